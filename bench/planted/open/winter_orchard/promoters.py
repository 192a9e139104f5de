"""Made-up DNA: promoters hold a pair of motifs at the right distance."""

import numpy as np
import torch
from settings import Settings
from torch.utils.data import DataLoader, TensorDataset

BOXES = ["TATAAT", "TTGACA"]
LETTERS = "ACGT"


def _planted(rng: np.random.Generator, row: np.ndarray, together: bool) -> None:
    first, second = ([LETTERS.index(letter) for letter in box] for box in BOXES)
    at = rng.integers(2, row.size - 34)
    row[at : at + 6] = second
    gap = 17 if together else int(rng.integers(7, 15))
    row[at + 6 + gap : at + 12 + gap] = first


def make(count: int, length: int, seed: int) -> TensorDataset:
    rng = np.random.default_rng(seed)
    letters = rng.integers(0, 4, (count, length))
    labels = rng.integers(0, 2, count)
    for row, label in zip(letters, labels, strict=True):
        _planted(rng, row, bool(label))
    changed = rng.random(letters.shape) < 0.02
    letters[changed] = rng.integers(0, 4, int(changed.sum()))
    return TensorDataset(torch.from_numpy(letters), torch.from_numpy(labels).float())


def loaders(settings: Settings, batch: int) -> tuple[DataLoader, DataLoader]:
    sizes, seed = settings.sequences, settings.schedule.seed
    train = DataLoader(
        make(sizes.count, sizes.length, seed), batch, shuffle=True, drop_last=True, generator=torch.Generator().manual_seed(seed)
    )
    return train, DataLoader(make(sizes.held_out, sizes.length, seed + 1), 128)
