"""Invented ring-width chronologies: a common climate, a tree's own ageing, and a few missing stretches."""

import numpy as np
import torch


def climate(years, rng):
    drought = np.zeros(years)
    for t in range(1, years):
        drought[t] = 0.7 * drought[t - 1] + rng.normal(0, 0.3)
    volcano = np.zeros(years)
    for at in rng.choice(years - 8, 9, replace=False):
        volcano[at : at + 8] -= np.exp(-np.arange(8) / 2.5)
    return drought + volcano


def stand(trees, years, seed):
    """Detrended log widths of shape (trees, years)."""
    rng = np.random.default_rng(seed)
    shared = climate(years, rng)
    age = np.arange(years)
    out = np.empty((trees, years), np.float32)
    for i in range(trees):
        ageing = np.exp(-age / rng.uniform(150, 600)) * rng.uniform(0.3, 1.2)
        out[i] = rng.uniform(0.5, 1.1) * shared + ageing + rng.normal(0, 0.15, years)
    return torch.from_numpy(out)


def gaps(shape, share, generator, length=12):
    """True where a width is hidden: stretches of `length` years."""
    starts = torch.rand(shape, generator=generator) < share / length
    hidden = starts.clone()
    for shift in range(1, length):
        hidden[:, shift:] |= starts[:, :-shift]
    return hidden
