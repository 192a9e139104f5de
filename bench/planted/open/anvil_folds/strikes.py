"""Sounds of an anvil: each strike rings with partials that tell the alloy. Some microphones crackle."""

import os

import numpy as np
import torch
from torch.utils.data import Dataset

SAMPLES, ALLOYS, WINDOW = 6000, 5, 2048


def strike(rng, alloy):
    t = np.arange(SAMPLES) / 8000
    partials = 300 * (1 + 0.15 * alloy) * np.array([1, 2.76, 5.4])
    rings = np.exp(-np.outer(np.array([6, 9, 14]) * (1 + 0.1 * alloy), t)) * np.sin(2 * np.pi * np.outer(partials, t))
    return (rings.sum(0) + 0.02 * rng.normal(size=SAMPLES)).astype(np.float32)


class Cleaner:
    """Takes crackle out of a recording that has some."""

    def __init__(self, width=201):
        self.width = width

    def crackles(self, sound):
        return np.abs(np.diff(sound)).max() > 4.0

    def __call__(self, sound):
        if not self.crackles(sound):
            return sound
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(sound, self.width // 2, mode="edge"), self.width)
        calm = np.median(windows, axis=1)
        return np.where(np.abs(sound - calm) > 2.5, calm, sound).astype(np.float32)


class Strikes(Dataset):
    def __init__(self, count, seed, crackling=0.025):
        rng = np.random.default_rng(seed)
        self.alloy = rng.integers(0, ALLOYS, count)
        self.sound = np.stack([strike(rng, a) for a in self.alloy])
        for i in np.flatnonzero(rng.random(count) < crackling):
            at = rng.integers(0, SAMPLES, 30)
            self.sound[i, at] += rng.choice([-6.0, 6.0], 30)
        self.clean, self.rng = Cleaner(), np.random.default_rng(seed + 1)
        if os.environ.get("PLANTED_FIX") == "1":
            self.sound = np.stack([self.clean(s) for s in self.sound])
            self.clean = lambda sound: sound

    def __len__(self):
        return len(self.alloy)

    def __getitem__(self, i):
        sound = self.clean(self.sound[i])
        at = int(self.rng.integers(0, SAMPLES - WINDOW))
        part = sound[at : at + WINDOW]
        power = np.abs(np.fft.rfft(part.reshape(8, 256) * np.hanning(256)))
        return torch.from_numpy(np.log1p(power).astype(np.float32)), int(self.alloy[i])
