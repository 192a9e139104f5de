"""Hourly demand of many stations, simulated: daily and weekly cycles, weather, noise."""

import numpy as np
import torch


def make_panel(stations, hours, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    base = rng.normal(0, 0.5, (stations, 1))
    day = rng.uniform(0.5, 1.5, (stations, 1)) * np.sin(2 * np.pi * (t + rng.integers(0, 24, (stations, 1))) / 24)
    week = 0.4 * np.sin(2 * np.pi * t / 168 + rng.uniform(0, 6, (stations, 1)))
    weather = np.cumsum(rng.normal(0, 0.05, hours))
    weather = weather - weather.mean()
    load = base + day + week + 0.3 * weather + rng.normal(0, 0.15, (stations, hours))
    temp = weather + rng.normal(0, 0.1, (stations, hours))
    return torch.tensor(np.stack([load, temp], -1), dtype=torch.float32)


def draw_windows(panel, batch, context, horizon, rng):
    who = rng.integers(0, panel.shape[0], batch)
    when = rng.integers(0, panel.shape[1] - context - horizon, batch)
    rows = [panel[a, b : b + context + horizon] for a, b in zip(who, when)]
    w = torch.stack(rows)
    return torch.as_tensor(who), w[:, :context], w[:, context:]
