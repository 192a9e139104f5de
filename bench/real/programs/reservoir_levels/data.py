"""Hourly reservoir levels of several dams with rain and demand, and windows cut from them."""
import numpy as np
import pandas as pd
import torch
from torch.utils.data import DataLoader, Dataset

FEATURES = ["level", "rain", "demand", "temperature", "hour_sin", "hour_cos", "day_sin", "day_cos"]


def synthesize(dams=6, hours=1300, seed=5):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    frames = []
    for dam in range(dams):
        rain = np.where(rng.random(hours) < 0.06, rng.gamma(1.5, 3.0, hours), 0.0)
        demand = 2 + 0.8 * np.sin(2 * np.pi * (t - 7) / 24) + 0.4 * (t // 24 % 7 < 5) + rng.normal(0, 0.1, hours)
        temperature = 15 + 8 * np.sin(2 * np.pi * (t - 9) / 24) + 4 * np.sin(2 * np.pi * t / 700) + rng.normal(0, 0.5, hours)
        inflow = np.convolve(rain, np.exp(-np.arange(36) / 9.0) / 6, mode="full")[:hours]
        level = np.empty(hours)
        x = 60.0 + dam
        for i in range(hours):
            x += 0.3 * inflow[i] + 2.4 - demand[i] - 0.01 * (x - 60)
            level[i] = x + rng.normal(0, 0.05)
        frames.append(pd.DataFrame({
            "dam": dam, "level": level, "rain": rain, "demand": demand, "temperature": temperature,
            "hour_sin": np.sin(2 * np.pi * t / 24), "hour_cos": np.cos(2 * np.pi * t / 24),
            "day_sin": np.sin(2 * np.pi * t / 168), "day_cos": np.cos(2 * np.pi * t / 168)}))
    return pd.concat(frames, ignore_index=True)


class WindowDataset(Dataset):
    """Past of `history` hours with all features, future of `horizon` hours of known features and the level."""

    def __init__(self, values, starts, history, horizon):
        self.values = torch.tensor(values, dtype=torch.float32)
        self.starts, self.history, self.horizon = starts, history, horizon

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, i):
        a = self.starts[i]
        b = a + self.history
        past = self.values[a:b]
        future = self.values[b:b + self.horizon]
        return past, future[:, 2:], future[:, 0]


def build_loaders(history=72, horizon=24, batch_size=64, stride=4):
    """The first four fifths of each dam's record for training, the rest for validation."""
    span = history + horizon
    train, val, offset, pieces = [], [], 0, []
    for _, group in synthesize().groupby("dam"):
        values = group[FEATURES].to_numpy()
        cut = int(0.8 * len(values))
        mean, std = values[:cut].mean(0), values[:cut].std(0)
        pieces.append((values - mean) / std)
        train += [offset + s for s in range(0, cut - span + 1, stride)]
        val += [offset + s for s in range(cut - history, len(values) - span + 1, stride)]
        offset += len(values)
    values = np.concatenate(pieces)
    train_loader = DataLoader(WindowDataset(values, train, history, horizon), batch_size, shuffle=True)
    val_loader = DataLoader(WindowDataset(values, val, history, horizon), batch_size)
    return train_loader, val_loader
