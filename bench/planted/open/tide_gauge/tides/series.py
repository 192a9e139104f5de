"""Synthetic water levels of a few harbours: constituents, surge, and the spikes that real gauges have."""

import numpy as np

PERIODS = (12.42, 12.0, 23.93, 25.82, 12.66)  # M2, S2, K1, O1, N2, in hours


def harbour(seed: int, hours: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    level = sum(rng.uniform(0.2, 1.4) * np.cos(2 * np.pi * t / p + rng.uniform(0, 6.28)) for p in PERIODS)
    surge = np.convolve(rng.normal(0, 1, hours + 47), np.ones(48) / 48, mode="valid")
    level = level + surge
    spikes = rng.random(hours) < 0.02
    level[spikes] += rng.normal(0, 4, spikes.sum())
    return level.astype(np.float64)


def all_harbours(count: int, hours: int) -> list[np.ndarray]:
    return [harbour(100 + i, hours) for i in range(count)]
