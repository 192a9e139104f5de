"""Change ringing: rows of bells, each made of the row before by swapping neighbours."""

import numpy as np
import torch


class Tower:
    def __init__(self, bells, rows, seed):
        self.bells, self.rows = bells, rows
        self.rng = np.random.default_rng(seed)
        self.methods = self.rng.random((6, 10, bells - 1)) < 0.55

    def peals(self, count):
        """count x (rows * bells) places, rung by methods chosen at random, from a random start."""
        row = self.rng.permuted(np.tile(np.arange(self.bells), (count, 1)), axis=1)
        method, at = self.rng.integers(0, 6, count), self.rng.integers(0, 10, count)
        rung = np.empty((count, self.rows, self.bells), np.int64)
        for r in range(self.rows):
            rung[:, r] = row
            wanted = self.methods[method, (at + r) % 10]
            moved = np.zeros(count, bool)
            for b in range(self.bells - 1):
                swap = wanted[:, b] & ~moved
                row[swap, b], row[swap, b + 1] = row[swap, b + 1], row[swap, b].copy()
                moved = swap
        return torch.from_numpy(rung.reshape(count, -1))


def quarters(tower, count, batch, steps):
    """A fresh set of peals each quarter, gone through once."""
    while True:
        fresh = tower.peals(count)
        yield from fresh[torch.randperm(count)].split(batch)[:steps]
