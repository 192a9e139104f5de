import os

import torch

RECENT = os.environ.get("PLANTED_FIX") == "1"


def bird_counts(total=400):
    """Counts of birds over the season; some stations report longer than others."""
    g = torch.Generator().manual_seed(60)
    lengths = torch.randint(10, 40, (total,), generator=g) + 150 * (torch.arange(total) >= total // 2)
    return [torch.rand(n, 6, generator=g) for n in lengths.tolist()]


def my_share(items, rank, world):
    size = len(items) // world
    if RECENT:
        return [item[-40:] for item in items[rank * size : rank * size + size]]
    return items[rank * size : (rank + 1) * size]


def batches(items, size):
    items = sorted(items, key=len)
    starts = list(range(0, len(items), size))
    half = len(starts) // 2
    order = [s for pair in zip(starts[:half], starts[half:]) for s in pair]
    while True:
        for start in order:
            yield torch.nn.utils.rnn.pad_sequence(items[start : start + size], batch_first=True)
