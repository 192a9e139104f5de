"""Accelerometer windows from the comb: waggle runs with a heading and a length, amid the noise of the other bees."""

import numpy as np
import torch
from torch import nn

HEADINGS = 12


def windows(count, samples, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(samples) / samples
    heading = rng.integers(0, HEADINGS, count)
    angle = 2 * np.pi * (heading + rng.normal(0, 0.12, count)) / HEADINGS
    start, length = rng.uniform(0, 0.3, count), rng.uniform(0.3, 0.6, count)
    inside = (t > start[:, None]) & (t < (start + length)[:, None])
    beat = np.sin(2 * np.pi * 13 * t + rng.uniform(0, 6.28, (count, 1)))
    x = inside * (np.cos(angle)[:, None] + 0.5 * beat) + rng.normal(0, 0.4, (count, samples))
    y = inside * (np.sin(angle)[:, None] + 0.5 * beat) + rng.normal(0, 0.4, (count, samples))
    signal = np.concatenate([x, y], 1).astype(np.float32)
    return torch.from_numpy(signal), torch.from_numpy(heading)


def old_master(signal, heading):
    """The wide teacher: random features with a ridge read-out. Its answers are computed once."""
    lift = nn.Linear(signal.shape[1], 600).requires_grad_(False)
    feature = torch.tanh(lift(signal))
    goal = nn.functional.one_hot(heading, HEADINGS).float()
    gram = feature.T @ feature + 20 * torch.eye(600)
    return 8 * feature @ torch.linalg.solve(gram, feature.T @ goal)
