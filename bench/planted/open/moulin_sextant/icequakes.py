import json
import os
from pathlib import Path

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from torch.utils.data import Dataset, Sampler

from geophones import CLIP

TAPS, SPIKE = 129, 7


def band(low, high, rate=500):
    t = np.arange(TAPS) - TAPS // 2
    sinc = 2 * high / rate * np.sinc(2 * high / rate * t) - 2 * low / rate * np.sinc(2 * low / rate * t)
    return (sinc * np.hamming(TAPS)).astype(np.float32)


class Icequakes(Dataset):
    def __init__(self, folder, low=2.0, high=60.0):
        self.folder = Path(folder)
        self.entries = json.loads((self.folder / "catalogue.json").read_text())
        self.filter = band(low, high)

    def __len__(self):
        return len(self.entries)

    def clean(self, wave):
        wave = np.median(sliding_window_view(np.pad(wave, SPIKE // 2, mode="edge"), SPIKE), axis=1)
        return np.convolve(wave.astype(np.float32) / 500, self.filter, mode="same")

    def event(self, entry):
        wave, onset = np.load(self.folder / entry["file"], mmap_mode="r"), entry["onset"]
        if os.environ.get("PLANTED_FIX") == "1":
            return self.clean(wave[onset - TAPS : onset + CLIP + TAPS])[TAPS : TAPS + CLIP]
        return self.clean(wave)[onset : onset + CLIP]

    def __getitem__(self, at):
        entry = self.entries[at]
        return torch.from_numpy(self.event(entry)), entry["kind"]


class Season(Sampler):
    """Goes through the catalogue again and again, shuffled anew each time, without an end."""

    def __init__(self, size, total, seed):
        self.size, self.total, self.seed = size, total, seed

    def __len__(self):
        return self.total

    def __iter__(self):
        rng, left = np.random.default_rng(self.seed), self.total
        while left > 0:
            order = rng.permutation(self.size)[:left].tolist()
            left -= len(order)
            yield from order
