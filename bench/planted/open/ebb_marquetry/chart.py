"""An estuary on a grid: sea in the south, creeks that run up into the marsh. Only wet cells carry a water level."""

import os

import numpy as np
import torch

SPEEDS = np.array([0.5059, 0.5236, 0.4964, 0.2625], dtype=np.float32)  # M2, S2, N2, K1; radians an hour


class Estuary:
    def __init__(self, rows, columns, seed):
        rng = np.random.default_rng(seed)
        north, east = np.meshgrid(np.linspace(1, 0, rows), np.linspace(0, 1, columns), indexing="ij")
        coast = 0.47 + 0.06 * np.sin(7 * east + 1) + 0.02 * np.sin(31 * east)
        creeks = sum(np.abs(east - c - 0.04 * np.sin(9 * north + 20 * c)) < 0.011 for c in (0.23, 0.68))
        self.wet = (north < coast) | (creeks > 0)
        self.rows, self.columns = rows, columns
        self.depth = np.where(self.wet, 1.5 + 9 * np.clip(coast - north, 0, 1), 0).astype(np.float32)
        far = np.clip(north, 0, 1)[..., None].astype(np.float32)
        self.swing = np.array([1.9, 0.6, 0.4, 0.2], np.float32) * (1 - 0.5 * far) * (1 + 0.03 * rng.normal(size=(rows, columns, 4)))
        self.late = (2.2 * far + 0.3 * east[..., None] + rng.uniform(0, 6, 4)).astype(np.float32)
        self.place = np.stack([north, east], -1).astype(np.float32)

    def share(self, rank, world):
        """The band of rows that a rank looks after, from row to row."""
        if os.environ.get("PLANTED_FIX") == "1":
            load = self.wet.sum(1).cumsum() / self.wet.sum()
            cuts = [0, *(int(np.searchsorted(load, r / world)) + 1 for r in range(1, world)), self.rows]
        else:
            cuts = [self.rows * r // world for r in range(world + 1)]
        return cuts[rank], cuts[rank + 1]

    def band(self, top, bottom, lags):
        wet = self.wet[top:bottom]
        pick = lambda table: torch.from_numpy(table[top:bottom][wet].astype(np.float32))
        return Band(pick(self.swing), pick(self.late), torch.cat([pick(self.place), pick(self.depth)[:, None] / 10], 1), lags)


class Band:
    def __init__(self, swing, late, fixed, lags):
        self.swing, self.late, self.fixed = swing, late, fixed
        self.lags = torch.tensor(lags, dtype=torch.float32)
        self.speeds = torch.from_numpy(SPEEDS)

    def __len__(self):
        return len(self.swing)

    def level(self, hour):
        return (self.swing * torch.cos(self.speeds * hour - self.late)).sum(1)

    def at(self, hour, wind):
        """What the gauges told until this hour, and the level three hours on."""
        told = torch.stack([self.level(hour - lag) for lag in self.lags], 1)
        blown = wind.expand(len(self), 2)
        goal = self.level(hour + 3) * (1 + 0.02 * wind[0]) + 0.1 * wind[1] / (0.3 + self.fixed[:, 2])
        return torch.cat([told, self.fixed, blown], 1), goal
