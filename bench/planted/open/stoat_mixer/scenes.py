import torch


def scenes(count, side, kinds, seed):
    g = torch.Generator().manual_seed(seed)
    axis = torch.arange(side).float()
    kind = torch.randint(0, kinds, (count,), generator=g)
    angle = (kind.float() / kinds * 3.14159).view(-1, 1, 1)
    offset = torch.rand(count, 1, 1, generator=g) * 6.283
    wave = torch.sin(0.7 * (axis.view(1, -1, 1) * angle.cos() + axis.view(1, 1, -1) * angle.sin()) + offset)
    colour = torch.rand(count, 3, 1, 1, generator=g)
    picture = wave.unsqueeze(1) * colour + 0.8 * torch.randn(count, 3, side, side, generator=g)
    return picture, kind
