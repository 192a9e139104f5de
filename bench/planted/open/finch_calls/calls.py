"""Synthetic bird calls as log-mel-like pictures."""

import numpy as np
import torch
from torch.utils.data import Dataset


class Calls(Dataset):
    def __init__(self, data, seed: int, augment: bool = True):
        rng = np.random.default_rng(seed)
        self.augment = augment
        t = np.linspace(0, 1, data.frames)[:, None]
        band = np.arange(data.bands)[None]
        self.labels = rng.integers(0, data.species, size=data.calls)
        self.pictures = np.empty((data.calls, data.frames, data.bands), dtype=np.float32)
        for i, label in enumerate(self.labels):
            centre = data.bands / 2 + data.bands / 3 * np.sin(2 * np.pi * (label + 1) * t / 3 + rng.uniform(0, 0.5))
            self.pictures[i] = np.exp(-((band - centre) ** 2) / 6) + rng.normal(0, 0.3, size=(data.frames, data.bands))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        picture = torch.from_numpy(self.pictures[index])
        if self.augment:
            # masks one stretch of time and of frequency, the same for a call each time
            a, b = (index * 7) % (picture.shape[0] - 5), (index * 11) % (picture.shape[1] - 3)
            picture = picture.clone()
            picture[a : a + 5] = 0
            picture[:, b : b + 3] = 0
        return picture, int(self.labels[index])
