"""Fibre profiles of fleeces: diameter and crimp along a staple, drawn twice from each fleece."""

import torch

POINTS = 192


class Clip:
    def __init__(self, count, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.count = count
        self.micron = 15 + 20 * torch.rand(count, generator=self.g)
        self.crimp = 2 + 9 * torch.rand(count, 3, generator=self.g)
        self.phase = 6.283 * torch.rand(count, 3, generator=self.g)
        self.along = torch.linspace(0, 1, POINTS)

    def staples(self, rows, g=None):
        """One staple from each of these fleeces: two channels along its length."""
        g = g or self.g
        shift = 0.3 * torch.randn(len(rows), 3, 1, generator=g)
        waves = torch.sin(6.283 * self.crimp[rows][:, :, None] * self.along + self.phase[rows][:, :, None] + shift)
        micron = (self.micron[rows] - 25)[:, None] / 10 + 0.2 * waves[:, 0] * waves[:, 1]
        both = torch.stack([micron, waves.mean(1)], 1)
        return both + 0.25 * torch.randn(both.shape, generator=g)
