"""Batches of stays that fit together."""

import os
import random
from collections.abc import Iterator

import torch
from diaries import PAD, Diaries, Stay
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Sampler

FIXED = os.environ.get("PLANTED_FIX") == "1"


class PooledBatches(Sampler[list[int]]):
    """Shuffles the stays, orders them within large pools, cuts the pools into batches and shuffles these."""

    def __init__(self, diaries: Diaries, batch_size: int, pool: int, seed: int) -> None:
        self.diaries, self.batch_size, self.pool, self.seed = diaries, batch_size, pool, seed
        self.epoch = 0

    def __len__(self) -> int:
        return len(self.diaries) // self.batch_size

    def size(self, index: int) -> int:
        if FIXED:
            return len(self.diaries[index].codes)
        return len(self.diaries[index])

    def __iter__(self) -> Iterator[list[int]]:
        rng = random.Random(self.seed + self.epoch)
        self.epoch += 1
        order = list(range(len(self.diaries)))
        rng.shuffle(order)
        reach = self.pool * self.batch_size
        batches: list[list[int]] = []
        for start in range(0, len(order), reach):
            pool = sorted(order[start : start + reach], key=self.size)
            batches += [pool[i : i + self.batch_size] for i in range(0, len(pool) - self.batch_size + 1, self.batch_size)]
        rng.shuffle(batches)
        return iter(batches)


def collate(stays: list[Stay]) -> dict[str, torch.Tensor]:
    codes = pad_sequence([stay.codes for stay in stays], batch_first=True, padding_value=PAD)
    gaps = pad_sequence([stay.gaps for stay in stays], batch_first=True)
    return {"codes": codes, "gaps": gaps, "readmitted": torch.tensor([stay.readmitted for stay in stays])}
