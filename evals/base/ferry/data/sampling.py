"""The order of examples: a permutation for each epoch, the same on every rank, divided among the ranks."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.utils.data import Sampler


class EpochSampler(Sampler[int]):
    """Shuffled indices of this rank; ranks get equal numbers, the rest of an epoch is left out."""

    def __init__(self, size: int, seed: int, rank: int = 0, ranks: int = 1, shuffle: bool = True) -> None:
        self.size, self.seed, self.rank, self.ranks, self.shuffle = size, seed, rank, ranks, shuffle
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return self.size // self.ranks

    def __iter__(self) -> Iterator[int]:
        if self.shuffle:
            generator = torch.Generator().manual_seed(self.seed * 65_537 + self.epoch)
            order = torch.randperm(self.size, generator=generator).tolist()
        else:
            order = list(range(self.size))
        usable = len(self) * self.ranks
        yield from order[self.rank : usable : self.ranks]
