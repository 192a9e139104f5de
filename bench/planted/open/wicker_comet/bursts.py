"""A catalogue of gamma-ray bursts: duration, hardness, fluence, peaks ... long and short ones, with gaps in the record."""

import numpy as np
import torch

COLUMNS = 14


def catalogue(cfg, seed=99):
    rng = np.random.default_rng(seed)
    n = cfg["bursts"] + cfg["held_out"]
    long_ = rng.random(n) < 0.74
    core = rng.normal(size=(n, 5)) * np.where(long_, 0.5, 0.3)[:, None] + np.where(long_, 0.6, -0.9)[:, None]
    mix = rng.normal(size=(5, COLUMNS)) * 0.5
    x = np.sinh(core @ mix) + 0.25 * rng.standard_t(5, (n, COLUMNS))
    x[:, 3] += 0.4 * x[:, 0] ** 2
    x[:, 7] = np.where(rng.random(n) < 0.1, np.median(x[:, 7]), x[:, 7])
    x = np.arcsinh((x - np.median(x, 0)) / x.std(0))
    x = torch.from_numpy(x).float()
    return x[: cfg["bursts"]], x[cfg["bursts"] :]


class Epochs:
    """Shuffled batches with a little jitter; an epoch is a part of the catalogue."""

    def __init__(self, rows, batch, size, seed):
        self.rows, self.batch, self.size = rows, batch, size
        self.g = torch.Generator().manual_seed(seed)

    def __iter__(self):
        order = torch.randperm(len(self.rows), generator=self.g)[: self.size]
        for part in order.split(self.batch):
            x = self.rows[part]
            yield x + 0.01 * torch.randn(x.shape, generator=self.g)
