"""Petals of saffron under the lens: veins on violet."""

import math

import torch


class Petals:
    def __init__(self, count: int, size: int, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        axis = torch.linspace(-1, 1, size)
        y, x = torch.meshgrid(axis, axis, indexing="ij")
        turn = torch.rand(count, 1, 1, generator=self.generator) * math.pi
        along = x * turn.cos() + y * turn.sin()
        veins = torch.sin(14 * along + 2 * torch.sin(3 * (x * turn.sin() - y * turn.cos()))).abs()
        violet = torch.tensor([0.4, -0.3, 0.6])[None, :, None, None]
        noise = 0.05 * torch.randn(count, 3, size, size, generator=self.generator)
        self.pictures = (violet + 0.4 * (veins[:, None] - 0.5) + noise).clamp(-1, 1)

    def batch(self, size: int) -> torch.Tensor:
        return self.pictures[torch.randint(len(self.pictures), (size,), generator=self.generator)]
