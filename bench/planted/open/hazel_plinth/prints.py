"""Guilloché lines from old banknotes: the path of a pen on wheels that turn on wheels."""

import math

import torch


def pen(points, wheels, rub, g):
    t = torch.linspace(0, 2 * math.pi, points)
    harmonics = torch.arange(1, wheels + 1) * torch.tensor([1, 5, -7])[:wheels]

    def draw(n):
        size = torch.rand(n, wheels, 1, generator=g) / torch.arange(1, wheels + 1)[:, None]
        start = 2 * math.pi * torch.rand(n, wheels, 1, generator=g)
        angle = harmonics[:, None] * t + start
        path = torch.cat([(size * angle.cos()).sum(1), (size * angle.sin()).sum(1)], 1)
        return path + rub * torch.randn(path.shape, generator=g)

    return draw
