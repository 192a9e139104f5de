"""Clean signals and their noisy copies; the noise is new in each epoch."""

import numpy as np
import torch
from torch.utils.data import Dataset

LENGTH = 64


def clean_signals(count, seed):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, LENGTH, dtype=np.float32)
    out = np.zeros((count, LENGTH), dtype=np.float32)
    for i in range(count):
        for _ in range(3):
            out[i] += rng.normal() * np.sin(2 * np.pi * rng.integers(1, 8) * t + rng.uniform(0, 6.28))
    return out


class Noisy(Dataset):
    def __init__(self, signals, level):
        self.signals = signals
        self.level = level

    def __len__(self):
        return len(self.signals)

    def __getitem__(self, i):
        clean = self.signals[i]
        noise = np.random.normal(0, self.level, LENGTH).astype(np.float32)
        gain = np.random.uniform(0.7, 1.3)
        target = (gain * clean).astype(np.float32)
        return torch.from_numpy(target + noise), torch.from_numpy(target)


class Fixed(Dataset):
    def __init__(self, signals, level, seed):
        rng = np.random.default_rng(seed)
        self.clean = torch.from_numpy(signals)
        self.noisy = self.clean + torch.from_numpy(rng.normal(0, level, signals.shape).astype(np.float32))

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, i):
        return self.noisy[i], self.clean[i]
