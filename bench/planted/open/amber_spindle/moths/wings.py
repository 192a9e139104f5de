"""Drawn wings: a few pattern numbers for each specimen, turned into pixels when asked for."""

import numpy as np
import torch
from torch.utils.data import Dataset


class Wings(Dataset):
    """One specimen is a row of pattern numbers; `species` follows from two of them with long tails."""

    def __init__(self, specimens: int, side: int, classes: int, seed: int, augment: bool = True) -> None:
        rng = np.random.default_rng(seed)
        self.side, self.classes, self.augment = side, classes, augment
        self.species = torch.from_numpy(np.minimum(rng.geometric(0.25, specimens) - 1, classes - 1))
        self.bars = 1.5 + 0.6 * self.species.numpy() + 0.1 * rng.standard_normal(specimens)
        self.tilt = rng.uniform(-0.4, 0.4, specimens)
        self.spots = rng.uniform(-0.7, 0.7, (specimens, 5, 2))
        self.seeds = rng.integers(0, 2**31, specimens)
        axis = np.linspace(-1, 1, side)
        self.y, self.x = np.meshgrid(axis, axis, indexing="ij")

    def __len__(self) -> int:
        return len(self.species)

    def _scan(self, index: int) -> np.ndarray:
        turned = self.x * np.cos(self.tilt[index]) + self.y * np.sin(self.tilt[index])
        wing = np.sin(turned * self.bars[index] * np.pi)
        for row, column in self.spots[index]:
            wing += 0.8 * np.exp(-((self.y - row) ** 2 + (self.x - column) ** 2) / 0.02)
        wing *= (self.x**2 + self.y**2) < 0.95
        if self.augment:
            rng = np.random.default_rng(self.seeds[index])
            wing = wing + 0.4 * rng.standard_normal(wing.shape)
        return wing.astype(np.float32)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.from_numpy(self._scan(index))[None], self.species[index]
