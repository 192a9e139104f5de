"""Aerial patches of a salt marsh: winding creeks on a textured ground."""

import math

import torch


class Marsh:
    def __init__(self, count: int, size: int, seed: int):
        generator = torch.Generator().manual_seed(seed)
        y, x = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
        phase, slope, bend = torch.rand(3, count, 1, 1, generator=generator) * 2 - 1
        creek = x - slope * y - 0.4 * torch.sin(math.pi * (y + phase)) * bend
        ground = 0.2 * torch.randn(count, size, size, generator=generator)
        self.patches = (torch.tanh(6 * creek.abs() - 1.5) + ground).clamp(-1, 1).unsqueeze(1)
        self.generator = generator

    def draw(self, batch: int) -> torch.Tensor:
        picked = torch.randint(len(self.patches), (batch,), generator=self.generator)
        patches = self.patches[picked]
        if torch.rand((), generator=self.generator) < 0.5:
            patches = patches.flip(-1)
        return patches
