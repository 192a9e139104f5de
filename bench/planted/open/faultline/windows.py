"""Windows around arrivals, for picking the first motion."""

import math

import numpy as np
import torch
from archive import RATE, Archive
from torch.utils.data import Dataset


def butterfly(length: int, low: float, high: float) -> np.ndarray:
    """A band pass in the frequency domain with soft edges."""
    frequency = np.fft.rfftfreq(length, 1 / RATE)
    return (1 / (1 + np.exp(-(frequency - low) * 8)) / (1 + np.exp((frequency - high) * 2))).astype(np.float32)


class Windows(Dataset):
    def __init__(self, archive: Archive, numbers: range, length: int, seed: int) -> None:
        self.archive, self.numbers, self.length = archive, numbers, length
        self.rng = np.random.default_rng(seed)
        self.band = butterfly(length, 1.0, 20.0)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        arrival = self.archive.arrivals[self.numbers[index]]
        ahead = int(self.rng.integers(self.length // 8, self.length - self.length // 8))
        wave = self.archive[arrival.station].cut(arrival.sample - ahead, self.length)
        wave = np.fft.irfft(np.fft.rfft(wave) * self.band, self.length)
        wave = wave / (np.abs(wave).max() + 1e-6)
        return torch.from_numpy(wave.astype(np.float32)), torch.tensor(ahead)


def soft_targets(ahead: torch.Tensor, length: int, sigma: float = 8.0) -> torch.Tensor:
    """A bell around the arrival that sums to one."""
    offset = (torch.arange(length)[None] - ahead[:, None]).float()
    return torch.exp(-0.5 * (offset / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))
