"""Bobbin lace: a pricking is a row of stitches, one a pin; grounds and fillings follow one another by the maker's habits."""

import numpy as np
import torch

STITCHES = 40


class LaceMaker:
    """Draws rows from a second-order chain. A row's length is that of its ground's repeat, so rows of one draw are of one length."""

    def __init__(self, seed, pins=64):
        rng = np.random.default_rng(seed)
        self.habits = np.cumsum(rng.dirichlet(np.full(STITCHES, 0.08), (STITCHES, STITCHES)), -1)
        self.pins, self.rng = pins, np.random.default_rng(seed + 1)

    def rows(self, n):
        out = np.empty((n, self.pins + 1), np.int64)
        out[:, :2] = self.rng.integers(0, STITCHES, (n, 2))
        luck = self.rng.random((n, self.pins + 1, 1))
        for pin in range(2, self.pins + 1):
            out[:, pin] = (self.habits[out[:, pin - 2], out[:, pin - 1]] < luck[:, pin]).sum(-1).clip(max=STITCHES - 1)
        return torch.from_numpy(out)


class Pillow:
    """A fixed stock of rows, dealt in a new order each epoch; now and then a stitch is misread."""

    def __init__(self, rows, batch, slips, seed):
        self.rows, self.batch, self.slips = rows, batch, slips
        self.dice = torch.Generator().manual_seed(seed)

    def __len__(self):
        return len(self.rows) // self.batch

    def __iter__(self):
        order = torch.randperm(len(self.rows), generator=self.dice)
        for at in range(len(self)):
            rows = self.rows[order[at * self.batch : (at + 1) * self.batch]]
            slip = torch.rand(rows.shape, generator=self.dice) < self.slips
            yield torch.where(slip, torch.randint(STITCHES, rows.shape, generator=self.dice), rows), rows
