"""Made-up fields: each crop has its green-up and harvest day; clouds hide some passes of the satellite."""

import numpy as np
import torch
from torch.utils.data import Dataset


class Fields(Dataset):
    channels, crops, passes = 6, 9, 36

    def __init__(self, n=1920, seed=7):
        rng = np.random.default_rng(seed)
        crop = rng.integers(0, self.crops, n)
        rise = (60 + 14 * np.arange(self.crops))[crop] + rng.normal(0, 6, n)
        length = (80 + 11 * ((np.arange(self.crops) * 5) % self.crops))[crop] + rng.normal(0, 6, n)
        self.day = np.sort(rng.integers(0, 365, (n, self.passes)), 1)
        up = 1 / (1 + np.exp(-(self.day - rise[:, None]) / 8))
        down = 1 / (1 + np.exp((self.day - (rise + length)[:, None]) / 8))
        response = rng.normal(0, 1, (self.crops, self.channels))[crop] * 0.3 + 1
        x = (up * down)[:, :, None] * response[:, None] + rng.normal(0, 0.15, (n, self.passes, self.channels))
        clouds = rng.random((n, self.passes, 1)) < 0.2
        self.x = np.where(clouds, 1.8, x).astype(np.float32)
        self.crop = crop

    def __len__(self):
        return len(self.crop)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i]), torch.from_numpy(self.day[i]), int(self.crop[i])
