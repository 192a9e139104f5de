"""Endless batches of made-up grain strips."""

import math
from collections.abc import Generator

import torch


def saw(count: int, length: int, seed: int) -> torch.Tensor:
    dice = torch.Generator().manual_seed(seed)
    t = torch.linspace(0, 1, length)
    rings = 3 + 9 * torch.rand(count, 1, generator=dice)
    shift = torch.rand(count, 1, generator=dice)
    knot = torch.exp(-((t - torch.rand(count, 1, generator=dice)) ** 2) / 0.004)
    strips = torch.sin(2 * math.pi * (rings * t + shift) + 2 * knot)
    return 0.8 * strips + 0.05 * torch.randn(count, length, generator=dice)


def shuffled(strips: torch.Tensor, batch: int, seed: int) -> Generator[torch.Tensor, None, None]:
    dice = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(strips), generator=dice)
        for begin in range(0, len(strips) - batch + 1, batch):
            yield strips[order[begin : begin + batch]]
