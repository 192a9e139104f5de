"""Whalers' log books: entries from a line to a page, as words by number; was it a good day?"""

import random

import torch

WORDS = 400


def entries(count: int = 2400, seed: int = 61) -> list[tuple[torch.Tensor, int]]:
    rng = random.Random(seed)
    out = []
    for _ in range(count):
        good = rng.random() < 0.5
        length = rng.choice([12, 16, 20, 24, 32, 48, 120, 160, 200])
        words = [rng.randrange(1, 200) if rng.random() < (0.6 if good else 0.4) else rng.randrange(200, WORDS) for _ in range(length)]
        out.append((torch.tensor(words), int(good)))
    return out


def by_length(rows):
    """Neighbours in this order have equal lengths, so batches need little padding."""
    return sorted(rows, key=lambda row: len(row[0]))
