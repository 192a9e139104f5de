"""Patch descriptors with labels, a part of which is wrong."""

from collections.abc import Iterator
from typing import NamedTuple

import torch


class Batch(NamedTuple):
    ids: torch.Tensor
    x: torch.Tensor
    y: torch.Tensor


class Register:
    def __init__(self, count: int, bands: int, materials: int, wrong: float, seed: int) -> None:
        dice = torch.Generator().manual_seed(seed)
        centres = torch.randn(materials, bands, generator=dice)
        truth = torch.randint(materials, (count,), generator=dice)
        self.x = centres[truth] + 1.5 * torch.randn(count, bands, generator=dice)
        noise = torch.randint(materials, (count,), generator=dice)
        self.y = torch.where(torch.rand(count, generator=dice) < wrong, noise, truth)
        self.dice = dice

    def __len__(self) -> int:
        return len(self.y)

    def batches(self, size: int) -> Iterator[Batch]:
        while True:
            for ids in torch.randperm(len(self), generator=self.dice).split(size):
                if len(ids) == size:
                    yield Batch(ids, self.x[ids], self.y[ids])
