"""A summer of bat detectors: one JSON line per call, with its frequency contour, as the field software exports them."""

import json
import math
import random

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

SPECIES = ("pip", "nyc", "myo", "ple", "rhi", "bar")
POINTS = 96
START = (82, 38, 95, 55, 108, 44)
DROP = (36, 15, 58, 28, 6, 12)
BEND = (3.0, 1.2, 1.0, 1.6, 9.0, 2.2)


def export(path, calls, seed):
    rng = random.Random(seed)
    with open(path, "w") as out:
        for number in range(calls):
            kind = rng.randrange(len(SPECIES))
            high, drop, bend = START[kind] + rng.gauss(0, 5), DROP[kind] * rng.uniform(0.7, 1.3), BEND[kind]
            points = rng.randrange(24, 40)
            khz = [round(high - drop * (1 - math.exp(-bend * i / points)) + rng.gauss(0, 1.5), 2) for i in range(points)]
            db = [round(-20 - 14 * abs(2 * i / points - 0.8) + rng.gauss(0, 2), 1) for i in range(points)]
            row = {"id": number, "species": SPECIES[kind], "site": rng.randrange(40), "khz": khz, "db": db}
            out.write(json.dumps(row) + "\n")


class Calls(Dataset):
    def __init__(self, path, count):
        self.path, self.count = path, count
        self.rows = None

    def _load(self):
        grid = np.linspace(0, 1, POINTS)
        self.rows = []
        with open(self.path) as lines:
            for line in lines:
                call = json.loads(line)
                own = np.linspace(0, 1, len(call["khz"]))
                trace = np.stack([np.interp(grid, own, call["khz"]) / 50 - 1, np.interp(grid, own, call["db"]) / 20 + 1.5])
                self.rows.append((trace.astype(np.float32), SPECIES.index(call["species"])))

    def __len__(self):
        return self.count

    def __getitem__(self, at):
        if self.rows is None:
            self._load()
        trace, kind = self.rows[at]
        return torch.from_numpy(trace), kind


class Shuffle(Sampler):
    """A share of the calls in a new order for each night."""

    def __init__(self, count, take, seed):
        self.count, self.take, self.seed, self.night = count, take, seed, 0

    def __len__(self):
        return self.take

    def __iter__(self):
        order = np.random.default_rng([self.seed, self.night]).permutation(self.count)
        return iter(order[: self.take].tolist())
