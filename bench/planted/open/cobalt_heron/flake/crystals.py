"""Snow crystals as the outlines of six-fold arms: radius against angle, and thickness."""

import math

import torch

POINTS = 192


def grow(count, gen):
    angle = torch.linspace(0, 2 * math.pi, POINTS + 1)[:-1]
    arm = torch.rand(count, 1, generator=gen) * 0.5 + 0.2
    fern = torch.rand(count, 1, generator=gen) * 0.2
    sharp = torch.randint(1, 4, (count, 1), generator=gen) * 6.0
    radius = 1 + arm * torch.cos(6 * angle) + fern * torch.cos(sharp * 3 * angle)
    rough = 0.03 * torch.randn(count, POINTS, generator=gen)
    return radius + rough


class Cloud:
    def __init__(self, count, seed):
        self.gen = torch.Generator().manual_seed(seed)
        self.stock = grow(count, self.gen)

    def fall(self, batch):
        return self.stock[torch.randint(len(self.stock), (batch,), generator=self.gen)]
