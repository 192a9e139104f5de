"""Weaving drafts as event lists: (thread, colour, lift) per pick; a motif is one of five families."""

import numpy as np
from torch.utils.data import Dataset

FAMILIES = 5
FEATURES = 12


def draft(family: int, rng: np.random.Generator) -> np.ndarray:
    picks = int(rng.integers(40, 90))
    t = np.arange(picks, dtype=np.float32)[:, None]
    period = 3 + 2 * family + rng.uniform(-0.3, 0.3)
    shift = np.linspace(0, 2, FEATURES, dtype=np.float32)[None]
    wave = np.sin(2 * np.pi * (t / period + shift * (1 + family % 2)))
    return (wave + rng.normal(0, 0.3, size=wave.shape)).astype(np.float32)


class Drafts(Dataset):
    def __init__(self, count: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.rows = [(draft(i % FAMILIES, rng).tolist(), i % FAMILIES) for i in range(count)]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> tuple[list[list[float]], int]:
        return self.rows[i]
