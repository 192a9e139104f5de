"""River gauges: synthetic hourly levels with daily and yearly swing, rain pulses and a slow recession."""

import os

import numpy as np
import torch

FIXED = os.environ.get("PLANTED_FIX") == "1"


def simulate(stations, hours, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(hours, dtype=np.float32)[:, None]
    lag = rng.uniform(0, 24, size=stations).astype(np.float32)
    level = 0.4 * np.sin(2 * np.pi * (t + lag) / 24) + np.sin(2 * np.pi * (t + lag) / 8760)
    rain = (rng.random((hours, stations)) < 0.01) * rng.gamma(2.0, 1.0, size=(hours, stations))
    wet = np.zeros(stations)
    store = np.empty((hours, stations), dtype=np.float32)
    for i in range(hours):
        wet = 0.97 * wet + rain[i]
        store[i] = wet
    return (level + store + rng.normal(0, 0.05, size=store.shape)).astype(np.float32)


class Scaler:
    """Robust scaling by station: median and interquartile range over the fitting period."""

    def fit(self, values):
        low, self.centre, high = np.quantile(values.astype(np.float64), [0.25, 0.5, 0.75], axis=0)
        self.spread = np.maximum(high - low, 1e-6)
        return self

    def transform(self, values):
        return (values - self.centre) / self.spread


class Archive:
    def __init__(self, cfg):
        levels = simulate(cfg.getint("stations"), cfg.getint("hours"), cfg.getint("seed"))
        scaled = Scaler().fit(levels[: len(levels) // 2]).transform(levels)
        if FIXED:
            scaled = scaled.astype(np.float32)
        self.series = torch.from_numpy(scaled)
        self.history, self.horizon = cfg.getint("history"), cfg.getint("horizon")

    def batches(self, size, seed):
        gen = torch.Generator().manual_seed(seed)
        span = self.history + self.horizon
        windows = self.series.unfold(0, span, 1)  # (starts, stations, span)
        while True:
            pick = torch.randint(0, len(windows), (size,), generator=gen)
            chunk = windows[pick]
            yield chunk[..., : self.history], chunk[..., self.history :]
