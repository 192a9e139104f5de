"""Electric load of a harbour: a CSV, read once, and windows over it."""

import csv
import math
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset


def ensure(path: Path, hours: int = 9000) -> Path:
    if not path.exists():
        rng = np.random.default_rng(6)
        with open(path, "w", newline="") as handle:
            writer = csv.writer(handle)
            writer.writerow(["hour", "load", "wind", "ships", "crane"])
            ships = 4.0
            for hour in range(hours):
                ships = max(0.0, ships + float(rng.normal(0, 0.4)) - 0.05 * (ships - 4))
                day = math.sin(2 * math.pi * hour / 24)
                load = 50 + 20 * day + 4 * ships + float(rng.normal(0, 2))
                writer.writerow([hour, f"{load:.3f}", f"{float(rng.gamma(2, 3)):.3f}", f"{ships:.3f}", int(day > 0)])
    return path


def read(path: Path) -> np.ndarray:
    with open(path) as handle:
        rows = list(csv.reader(handle))[1:]
    return np.array(rows, dtype=np.float32)[:, 1:]


class Windows(Dataset):
    def __init__(self, values: np.ndarray, history: int, horizon: int, mean=None, std=None):
        self.mean = values.mean(0) if mean is None else mean
        self.std = values.std(0) + 1e-6 if std is None else std
        self.values = torch.from_numpy((values - self.mean) / self.std)
        self.history, self.horizon = history, horizon

    def __len__(self):
        return len(self.values) - self.history - self.horizon + 1

    def __getitem__(self, index):
        middle = index + self.history
        return self.values[index:middle], self.values[middle : middle + self.horizon, 0]
