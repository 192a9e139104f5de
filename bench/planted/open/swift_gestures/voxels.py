import os

import numpy as np
import torch

from events import SIDE


class VoxelGrid:
    """Makes (batch, bins * 2, SIDE, SIDE) counts out of a list of recordings."""

    def __init__(self, bins):
        self.bins = bins

    def scatter(self, grid, recordings):
        who = np.repeat(np.arange(len(recordings)), [len(r) for r in recordings])
        t, x, y, p = np.concatenate(recordings).T
        t = np.minimum((t * self.bins).astype(np.int64), self.bins - 1)
        where = (who, t, p.astype(np.int64), y.astype(np.int64), x.astype(np.int64))
        grid.index_put_(tuple(torch.from_numpy(w) for w in where), torch.ones(1), accumulate=True)

    def count(self, grid, recordings):
        for b, recording in enumerate(recordings):
            for t, x, y, p in recording:
                bin = min(int(t * self.bins), self.bins - 1)
                grid[b, bin, int(p), int(y), int(x)] += 1

    def __call__(self, batch):
        recordings, labels = zip(*batch)
        grid = torch.zeros(len(batch), self.bins, 2, SIDE, SIDE)
        if os.environ.get("PLANTED_FIX") == "1":
            self.scatter(grid, recordings)
        else:
            self.count(grid, recordings)
        return torch.log1p(grid).flatten(1, 2), torch.tensor(labels)
