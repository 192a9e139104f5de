"""The archive: hand-sampled cores, and two that went through the scanner."""

import numpy as np
from torch.utils.data import Dataset

from .steps import Chain


def drift(rng, n):
    slow = np.cumsum(rng.normal(0, 0.03, n))
    years = np.cumsum(rng.uniform(0.05, 0.4, n))
    return (slow + 0.6 * np.sin(years) + 0.2 * np.sin(2.3 * years + 1)).astype(np.float32)


class Archive:
    def __init__(self, seed, hand=1278, scanned=2):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(400, 480, hand + scanned)
        sizes[rng.choice(hand + scanned, scanned, replace=False)] = rng.integers(800_000, 900_000, scanned)
        self.logs = [drift(rng, int(n)) for n in sizes]

    def __len__(self):
        return len(self.logs)


class Clips(Dataset):
    """One clip a core and epoch: clean target and a copy with dropouts and grain."""

    def __init__(self, archive: Archive, chain: Chain, width: int, seed: int):
        self.archive, self.chain, self.width, self.seed = archive, chain, width, seed

    def __len__(self):
        return len(self.archive)

    def __getitem__(self, key):
        epoch, core = divmod(key, len(self.archive))
        rng = np.random.default_rng((self.seed, epoch, core))
        clean = self.chain(self.archive.logs[core], rng)
        dirty = clean + rng.normal(0, 0.3, self.width).astype(np.float32)
        dirty[rng.random(self.width) < 0.08] = 0
        return dirty[None], clean[None]


class Rota:
    """Keys of all batches of a run, shuffled epoch by epoch."""

    def __init__(self, cores, batch, steps, seed):
        self.cores, self.batch, self.steps, self.seed = cores, batch, steps, seed

    def __len__(self):
        return self.steps

    def __iter__(self):
        rng, row = np.random.default_rng(self.seed), []
        epoch = given = 0
        while True:
            for core in rng.permutation(self.cores):
                row.append(int(epoch * self.cores + core))
                if len(row) == self.batch:
                    yield row
                    row, given = [], given + 1
                    if given == self.steps:
                        return
            epoch += 1
