"""Simulated cycling of lithium cells: capacity and a few other curves per cycle."""

import os

import numpy as np
import torch


def cycle_cells(count, cycles, points, rng):
    age = np.arange(cycles) / cycles
    rate = rng.uniform(0.2, 0.9, size=(count, 1))
    knee = rng.uniform(0.5, 1.1, size=(count, 1))
    capacity = 1.0 - rate * age**0.7 * 0.3 - 0.5 * np.clip(age - knee, 0, None)
    capacity += 0.004 * rng.standard_normal(capacity.shape)
    mixing = rng.standard_normal((points - 1, 3))
    causes = np.stack([capacity, np.sqrt(age)[None] * rate, np.sin(9 * age)[None] + 0 * rate], axis=-1)
    others = np.tanh(causes @ mixing.T) + 0.02 * rng.standard_normal((count, cycles, points - 1))
    return np.concatenate([capacity[..., None], others], axis=-1)


def standardize(curves):
    flat = curves.reshape(-1, curves.shape[-1])
    return (curves - flat.mean(axis=0)) / flat.std(axis=0)


def sliding(curves, window, horizon):
    past, future = [], []
    for cell in curves:
        for first in range(0, len(cell) - window - horizon, 4):
            past.append(cell[first : first + window].ravel())
            future.append(cell[first + window : first + window + horizon, 0])
    return np.stack(past), np.stack(future)


def build(cells, rng):
    curves = standardize(cycle_cells(cells["count"], cells["cycles"], cells["points"], rng))
    curves = curves.astype(np.float32) if os.environ.get("PLANTED_FIX") == "1" else curves
    past, future = sliding(curves, cells["window"], cells["horizon"])
    return torch.from_numpy(past), torch.from_numpy(future)
