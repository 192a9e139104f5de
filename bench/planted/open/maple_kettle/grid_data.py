"""Hourly load of a few made-up substations, cut into windows with calendar features."""

import lightning as L
import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from torch.utils.data import DataLoader, Dataset, RandomSampler


def simulate_load(stations, hours, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    rows = []
    for _ in range(stations):
        base = rng.uniform(40, 90)
        day = rng.uniform(5, 15) * np.sin(2 * np.pi * (t / 24 + rng.uniform()))
        week = rng.uniform(2, 8) * np.sin(2 * np.pi * (t / 168 + rng.uniform()))
        drift = np.cumsum(rng.normal(0, 0.15, hours))
        rows.append(base + day + week + drift + rng.normal(0, 1.5, hours))
    return np.stack(rows).astype(np.float32)


def seasonal_profile(history, period):
    usable = len(history) // period * period
    folded = history[-usable:].reshape(-1, period)
    return np.median(folded, axis=0)


class WindowDataset(Dataset):
    def __init__(self, load, start, stop, stride, context, horizon):
        self.items = []
        for series in load:
            for left in range(start, stop - context - horizon, stride):
                self.items.append(self._window(series, left, context, horizon))

    @staticmethod
    def _window(series, left, context, horizon):
        history = series[left : left + context]
        target = series[left + context : left + context + horizon]
        centre = np.median(history)
        scale = np.percentile(history, 90) - np.percentile(history, 10) + 1e-3
        daily = seasonal_profile(history, 24)
        steps = np.arange(context)
        trend = np.polyval(np.polyfit(steps, history, 2), steps)
        spread = sliding_window_view(np.pad(history, (11, 0), mode="edge"), 12).std(axis=1)
        hour = np.arange(left, left + context) % 24
        weekday = np.arange(left, left + context) // 24 % 7
        smooth = np.convolve(history, np.ones(6) / 6, mode="same")
        x = np.stack(
            [
                (history - centre) / scale,
                (smooth - centre) / scale,
                (daily[steps % 24] - centre) / scale,
                (trend - centre) / scale,
                spread / scale,
                np.sin(2 * np.pi * hour / 24),
                np.cos(2 * np.pi * hour / 24),
                weekday / 6.0,
            ]
        )
        y = (target - centre) / scale
        return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


class GridDataModule(L.LightningDataModule):
    features = 8

    def __init__(self, stations=6, hours=2400, context=96, horizon=12, batch_size=48, seed=5):
        super().__init__()
        self.stations = stations
        self.hours = hours
        self.context = context
        self.horizon = horizon
        self.batch_size = batch_size
        self.seed = seed
        self.order = torch.Generator().manual_seed(seed)

    def setup(self, stage=None):
        self.load = simulate_load(self.stations, self.hours, self.seed)
        self.split = int(self.hours * 0.85)

    def train_dataloader(self):
        windows = WindowDataset(self.load, 0, self.split, 12, self.context, self.horizon)
        return DataLoader(windows, batch_size=self.batch_size, drop_last=True, sampler=RandomSampler(windows, generator=self.order))

    def val_dataloader(self):
        windows = WindowDataset(self.load, self.split, self.hours, 24, self.context, self.horizon)
        return DataLoader(windows, batch_size=128)
