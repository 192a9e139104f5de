"""Wing beats of wasps, bees and hoverflies, with noise recorded in the field."""

import numpy as np
import torch
from torch.utils.data import Dataset

SPECIES = {"wasp": 150.0, "honey bee": 230.0, "bumble bee": 175.0, "hoverfly": 300.0}
RATE = 4000
bank: np.ndarray | None = None


def open_noise_bank(worker: int = 0) -> None:
    """Filters the field noise once for whoever reads (each process its own)."""
    global bank
    rng = np.random.default_rng(8)
    white = rng.standard_normal(RATE * 60)
    spectrum = np.fft.rfft(white)
    spectrum /= np.sqrt(np.arange(len(spectrum)) + 1.0)
    pink = np.fft.irfft(spectrum)
    bank = (pink / pink.std()).astype(np.float32)


class WingBeats(Dataset):
    def __init__(self, count: int, seconds: float = 0.25, seed: int = 0):
        rng = np.random.default_rng(seed)
        self.length = int(seconds * RATE)
        self.kind = rng.integers(0, len(SPECIES), count)
        self.pitch = np.array(list(SPECIES.values()))[self.kind] * rng.normal(1, 0.07, count)
        self.offset = rng.integers(0, RATE * 58, count)

    def __len__(self) -> int:
        return len(self.kind)

    def __getitem__(self, i: int):
        if bank is None:
            open_noise_bank()
        t = np.arange(self.length) / RATE
        tone = sum(np.sin(2 * np.pi * k * self.pitch[i] * t) / k for k in (1, 2, 3))
        wave = tone.astype(np.float32) + 1.5 * bank[self.offset[i] : self.offset[i] + self.length]
        return torch.from_numpy(wave), int(self.kind[i])
