"""Snippets of code as token ids, and which of a few bugs each one has."""

import os
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.data import BatchSampler, Dataset

FIX = os.environ.get("PLANTED_FIX") == "1"


@dataclass(frozen=True)
class Sizes:
    vocab: int = 300
    bugs: int = 6
    shortest: int = 12
    longest: int = 320


class Snippets(Dataset):
    """In order of length, so that a batch needs little filling."""

    def __init__(self, count: int, sizes: Sizes, seed: int):
        rng = np.random.default_rng(seed)
        spread = rng.beta(0.7, 2.2, count)
        lengths = np.sort((sizes.shortest + spread * (sizes.longest - sizes.shortest)).astype(int))
        self.rows = []
        for length in lengths:
            bug = int(rng.integers(sizes.bugs))
            tokens = rng.integers(20, sizes.vocab, length)
            tokens[rng.random(length) < 0.15] = 1 + bug
            self.rows.append((torch.from_numpy(tokens), bug))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int):
        return self.rows[index]


class RankBatches(BatchSampler):
    """The batches of one rank: runs of neighbours in length, in a new order each epoch."""

    def __init__(self, count: int, size: int, rank: int, world: int, seed: int):
        self.seed, self.epoch = seed, 0
        batches = [list(range(start, start + size)) for start in range(0, count - size + 1, size)]
        part = len(batches) // world
        if FIX:
            self.batches = batches[rank : part * world : world]
        else:
            self.batches = batches[rank * part : (rank + 1) * part]

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self):
        order = np.random.default_rng((self.seed, self.epoch)).permutation(len(self.batches))
        return iter([self.batches[int(i)] for i in order])


def stack(items: list):
    tokens = torch.nn.utils.rnn.pad_sequence([t for t, _ in items], batch_first=True)
    return tokens, torch.tensor([bug for _, bug in items])
