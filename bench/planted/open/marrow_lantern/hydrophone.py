"""Click envelopes of sperm whales from two moored arrays, one file each, and the spectra that the listener hears."""

import os
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

BANDS, CLANS = 24, 6
ARRAYS = {"ridge": 1000, "canyon": 4000}  # envelopes per second
HOP, SPAN = 20, 60


def coda(rng, clan, seconds, rate):
    time = np.arange(int(seconds * rate)) / rate
    beat = 0.12 + 0.05 * clan + rng.uniform(-0.01, 0.01)
    click = np.exp(-(time % beat) / 0.008) * np.cos(2 * np.pi * (90 + 45 * clan) * time)
    return (click + rng.normal(0, 0.5, len(time))).astype(np.float32)


def lay_down(folder, count=384, seed=3):
    for number, (name, rate) in enumerate(ARRAYS.items()):
        rng = np.random.default_rng(seed + number)
        seconds, clan = rng.uniform(1.6, 3.2, count), rng.integers(0, CLANS, count)
        waves = [coda(rng, c, s, rate) for s, c in zip(seconds, clan)]
        np.savez(Path(folder) / f"{name}.npz", wave=np.concatenate(waves), samples=[len(w) for w in waves], clan=clan, rate=rate)


def spectra(wave, rate):
    if os.environ.get("PLANTED_FIX") == "1":
        slowest = min(ARRAYS.values())
        hop, span = HOP * rate // slowest, SPAN * rate // slowest
    else:
        hop, span = HOP, SPAN
    pieces = wave.unfold(0, span, hop) * torch.hann_window(span)
    return F.adaptive_avg_pool1d(torch.fft.rfft(pieces).abs() / span**0.5, BANDS).log1p()


class Array:
    """The recordings of one array, in batches of like duration so that little is padded."""

    def __init__(self, folder, rank, batch):
        with np.load(Path(folder) / f"{list(ARRAYS)[rank]}.npz") as data:
            rate, samples, clan = int(data["rate"]), data["samples"], torch.from_numpy(data["clan"])
            waves = torch.from_numpy(data["wave"]).split(samples.tolist())
        self.batches = []
        for rows in np.array_split(np.argsort(samples / rate), len(samples) // batch):
            heard = [spectra(waves[row], rate) for row in rows]
            frames = torch.tensor([len(h) for h in heard])
            self.batches.append((pad_sequence(heard, batch_first=True).transpose(1, 2).contiguous(), frames, clan[rows]))

    def __len__(self):
        return len(self.batches)

    def voyage(self, number):
        order = torch.randperm(len(self), generator=torch.Generator().manual_seed(number))
        return (self.batches[i] for i in order.tolist())
