import torch

SIDE = 24


def rings(batch, generator):
    axis = torch.linspace(-1, 1, SIDE)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    c = torch.rand(batch, 2, 1, 1, generator=generator) - 0.5
    r = 0.2 + 0.3 * torch.rand(batch, 1, 1, generator=generator)
    distance = ((yy - c[:, 0]) ** 2 + (xx - c[:, 1]) ** 2).sqrt()
    return torch.sigmoid(30 * (0.1 - (distance - r).abs())).flatten(1)
