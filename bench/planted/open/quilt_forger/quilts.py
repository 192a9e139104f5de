import torch


def sew(count, size, generator):
    """Quilt blocks: two stripes and a checker, in random phases and strengths."""
    line = torch.arange(size).float()
    phase = 6.28 * torch.rand(count, 3, 1, 1, generator=generator)
    pace = 0.4 + torch.rand(count, 3, 1, 1, generator=generator)
    across = torch.sin(pace[:, 0] * line[None, None, :] + phase[:, 0])
    down = torch.sin(pace[:, 1] * line[None, :, None] + phase[:, 1])
    checker = torch.sin(pace[:, 2] * (line[None, None, :] + line[None, :, None]) + phase[:, 2])
    return torch.tanh(across + down + 0.5 * checker).flatten(1)
