import json
import os
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

DRIFT, MAINS, SWELL = 480, 96, 960  # samples: the plate's slow drift, one period of the 50 Hz hum, loudness


def trailing_mean(x, window):
    total = np.cumsum(x, dtype=np.float64)
    mean = total.copy()
    mean[window:] -= total[:-window]
    mean[:window] /= np.arange(1, min(window, len(x)) + 1)
    mean[window:] /= window
    return mean


def tidy(raw):
    """Takes out drift and hum, and evens the loudness."""
    x = raw - trailing_mean(raw, DRIFT)
    x[MAINS:] = x[MAINS:] - 0.5 * x[:-MAINS]
    return x / np.sqrt(trailing_mean(x * x, SWELL) + 25.0)


class Tape:
    def __init__(self, path, length):
        self.path, self.length = path, length

    def excerpt(self, start, size):
        raw = np.memmap(self.path, np.int16, "r", shape=(self.length,))
        if os.environ.get("PLANTED_FIX") == "1":
            lead = min(start, DRIFT + MAINS + SWELL)
            return tidy(raw[start - lead : start + size])[lead:]
        else:
            return tidy(raw)[start : start + size]


class Clips(Dataset):
    """A random excerpt of each event, and the class of its grains."""

    def __init__(self, folder: Path, size):
        index = json.loads((folder / "index.json").read_text())
        self.tapes = [Tape(folder / row["file"], row["length"]) for row in index]
        self.grains, self.size = [row["grain"] for row in index], size

    def __len__(self):
        return len(self.tapes)

    def __getitem__(self, n):
        tape = self.tapes[n]
        start = int(torch.randint(tape.length - self.size, ()))
        return torch.from_numpy(tape.excerpt(start, self.size).astype(np.float32)), self.grains[n]
