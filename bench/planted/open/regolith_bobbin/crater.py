"""Height of a cratered plain, in closed form."""

import torch


def plain(seed, craters=40):
    g = torch.Generator().manual_seed(seed)
    return torch.rand(craters, 2, generator=g) * 2 - 1, 0.05 + 0.25 * torch.rand(craters, generator=g) ** 2


def height(at, craters):
    middle, radius = craters
    far = torch.cdist(at, middle) / radius
    bowl = torch.where(far < 1, far.square() - 1, 0.0)
    rim = 0.4 * torch.exp(-8 * (far - 1).square())
    return ((bowl + rim) * radius).sum(1, keepdim=True) * 2
