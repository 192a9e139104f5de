"""Synthetic sonar returns and the matched-filter bank that looks at them."""

import numpy as np
import torch
from torch.utils.data import Dataset

_bank = None


def chirp(length: int, start: float, stop: float) -> np.ndarray:
    t = np.linspace(0, 1, length)
    return np.sin(2 * np.pi * (start * t + 0.5 * (stop - start) * t * t))


def build_bank(filters: int, length: int) -> np.ndarray:
    """Chirps of many sweeps, made orthogonal so that their responses can be compared."""
    sweeps = [chirp(length, 2 + i * 0.8, 20 + i * 1.1) * np.hanning(length) for i in range(filters)]
    bank = np.stack(sweeps)
    for i in range(filters):
        for j in range(i):
            bank[i] -= 0.5 * (bank[i] @ bank[j]) / (bank[j] @ bank[j]) * bank[j]
        bank[i] /= np.linalg.norm(bank[i])
    return bank.astype(np.float32)


def prepare_worker(filters: int, length: int):
    global _bank
    _bank = build_bank(filters, length)


class Pings(Dataset):
    def __init__(self, conf):
        rng = np.random.default_rng(conf.seed)
        self.labels = rng.integers(0, 8, size=conf.pings)
        base = np.stack([chirp(conf.ping_length, 3 + 2 * k, 15 + 3 * k) for k in range(8)])
        noise = rng.normal(0, 1.2, size=(conf.pings, conf.ping_length))
        self.waves = (base[self.labels] + noise).astype(np.float32)

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, index):
        wave = self.waves[index]
        response = _bank @ wave
        spectrum = np.abs(np.fft.rfft(wave))[:128]
        features = np.concatenate([wave, response, np.log1p(spectrum)])
        return torch.from_numpy(features.astype(np.float32)), int(self.labels[index])
