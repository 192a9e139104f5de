"""Increment cores of old beams: ring widths in hundredths of a millimetre, as the measuring bench exports them (one JSON record a line)."""

import json
import os

import numpy as np
import torch
from torch.utils.data import Dataset


def saw_beams(path, count, rings, seed):
    """Simulates the bench: cores of one region share the climate, each has its own growth trend."""
    rng = np.random.default_rng(seed)
    climate = np.convolve(rng.normal(0, 1, (rings + 8)), np.ones(3) / 3, "valid")[:rings]
    with open(path, "w") as file:
        for number in range(count):
            slope = rng.uniform(0.0005, 0.003)
            width = 180 * np.exp(-slope * np.arange(rings) + 0.25 * climate + 0.2 * rng.normal(0, 1, rings))
            record = {"core": f"B{number:04d}", "species": "QURO", "widths": np.round(width, 1).tolist()}
            file.write(json.dumps(record) + "\n")


def read_bench(path):
    with open(path) as file:
        records = [json.loads(line) for line in file]
    if os.environ.get("PLANTED_FIX") == "1":
        return [torch.tensor(record["widths"], dtype=torch.float64) for record in records]
    else:
        return [record["widths"] for record in records]


class Overlaps(Dataset):
    """Two stretches of one core that share most of their years."""

    def __init__(self, path, stretch, shift, rounds, seed):
        self.cores, self.stretch, self.shift, self.rounds = read_bench(path), stretch, shift, rounds
        rng = np.random.default_rng(seed)
        room = min(map(len, self.cores)) - stretch - shift
        self.first = rng.integers(0, room, len(self.cores) * rounds).tolist()
        self.second = rng.integers(1, shift, len(self.cores) * rounds).tolist()

    def __len__(self):
        return len(self.cores) * self.rounds

    def __getitem__(self, at):
        core, a = self.cores[at % len(self.cores)], self.first[at]
        b = a + self.second[at]
        return {"early": core[a : a + self.stretch], "late": core[b : b + self.stretch], "shift": b - a}
