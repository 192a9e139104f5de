"""Windows of noisy seasonal series."""

import numpy as np
import torch
from torch.utils.data import Dataset


def make_series(count, length, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(length)
    series = []
    for _ in range(count):
        period = rng.uniform(6, 14)
        shape = np.sin(2 * np.pi * t / period + rng.uniform(0, 6)) * rng.uniform(0.5, 1.5)
        trend = rng.normal(0, 0.01) * t
        series.append(shape + trend + rng.normal(0, 0.15, length))
    return np.stack(series).astype(np.float32)


class Windows(Dataset):
    def __init__(self, series, window, horizon, stride):
        self.series = series
        self.window = window
        self.horizon = horizon
        last = series.shape[1] - window - horizon
        self.places = [(s, t) for s in range(len(series)) for t in range(0, last, stride)]

    def __len__(self):
        return len(self.places)

    def __getitem__(self, i):
        s, t = self.places[i]
        row = self.series[s]
        history = torch.tensor([float(v) for v in row[t : t + self.window]])
        future = torch.tensor([float(v) for v in row[t + self.window : t + self.window + self.horizon]])
        center, scale = history.mean(), history.std() + 1e-3
        return ((history - center) / scale).unsqueeze(-1), (future - center) / scale
