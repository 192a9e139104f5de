"""Entries from ships' logbooks: token sequences of very different length, and the sea area that they are about."""

import os
import random

import torch
from torch.utils.data import Dataset, Sampler

FIXED = os.environ.get("PLANTED_FIX") == "1"
AREAS, WORDS = 10, 900


class Entries(Dataset):
    def __init__(self, count: int, shortest: int, longest: int, seed: int) -> None:
        rng = random.Random(seed)
        self.rows = []
        for _ in range(count):
            area = rng.randrange(AREAS)
            length = int(shortest * (longest / shortest) ** rng.random())
            tokens = [1 + area * 20 + rng.randrange(20) if rng.random() < 0.2 else rng.randrange(300, WORDS) for _ in range(length)]
            self.rows.append((torch.tensor(tokens), area))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.rows[index]

    @property
    def lengths(self) -> list[int]:
        return [len(tokens) for tokens, _ in self.rows]


class LengthGroups(Sampler):
    """Batches of entries of about equal length, so that little is padded, dealt out to the ranks."""

    def __init__(self, lengths: list[int], batch_size: int, rank: int, ranks: int, seed: int) -> None:
        self.batch_size, self.rank, self.ranks, self.seed, self.epoch = batch_size, rank, ranks, seed, 0
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        batches = [order[start : start + batch_size] for start in range(0, len(order) - batch_size + 1, batch_size)]
        self.mine = self._dealt(batches[: len(batches) // ranks * ranks])

    def _dealt(self, batches: list[list[int]]) -> list[list[int]]:
        if FIXED:
            return batches[self.rank :: self.ranks]
        share = len(batches) // self.ranks
        return batches[self.rank * share : (self.rank + 1) * share]

    def __len__(self) -> int:
        return len(self.mine)

    def __iter__(self):
        order = list(range(len(self.mine)))
        random.Random(self.seed + self.epoch).shuffle(order)
        self.epoch += 1
        return iter([self.mine[position] for position in order])


def joined(rows: list[tuple[torch.Tensor, int]]) -> tuple[torch.Tensor, torch.Tensor]:
    tokens = torch.nn.utils.rnn.pad_sequence([tokens for tokens, _ in rows], batch_first=True)
    return tokens, torch.tensor([area for _, area in rows])
