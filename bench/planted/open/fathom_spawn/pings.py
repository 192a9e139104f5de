"""Made-up pings: a bottom of some hardness, a few layers, and a tail as long as the water is deep."""

import os

import numpy as np
import torch


def make_pings(n=1280, seed=2):
    rng = np.random.default_rng(seed)
    pings = []
    for _ in range(n):
        kind = int(rng.integers(0, 6))
        length = int(np.clip(np.exp(rng.normal(4.7, 1.1)), 32, 1400))
        t = np.arange(length)
        wave = 0.4 * rng.normal(size=length) * np.exp(-t / (60 + 25 * kind))
        for k in range(1 + kind % 3):
            at = rng.integers(0, max(1, length - 24))
            wave[at : at + 24] += (0.6 + 0.15 * kind) * np.hanning(24)[: length - at]
        pings.append((wave.astype(np.float32), kind))
    return pings


class PingBatches:
    """Batches of pings of nearly the same length, so that hardly anything is padding; each rank has its share of the batches."""

    def __init__(self, pings, rank, ranks, size):
        self.pings, self.size = pings, size
        order = sorted(range(len(pings)), key=lambda i: len(pings[i][0]))
        groups = [order[i : i + size] for i in range(0, len(order) - size + 1, size)]
        self.mine = self.share(groups, rank, ranks)
        self.order = list(range(len(self.mine)))

    @staticmethod
    def share(groups, rank, ranks):
        if os.environ.get("PLANTED_FIX") == "1":
            return groups[rank::ranks]
        each = len(groups) // ranks
        return groups[rank * each : (rank + 1) * each]

    def shuffle(self, seed):
        self.order = np.random.default_rng(seed).permutation(len(self.mine)).tolist()

    def __iter__(self):
        for at in self.order:
            chosen = [self.pings[i] for i in self.mine[at]]
            length = torch.tensor([len(wave) for wave, _ in chosen])
            x = torch.zeros(len(chosen), int(length.max()))
            for row, (wave, _) in zip(x, chosen):
                row[: len(wave)] = torch.from_numpy(wave)
            yield x, length, torch.tensor([kind for _, kind in chosen])
