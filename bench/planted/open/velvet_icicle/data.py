"""Snowflake-like six-fold symmetric grayscale images in [-1, 1]."""

import numpy as np
import torch


def snowflakes(count, size, seed):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[-1 : 1 : size * 1j, -1 : 1 : size * 1j]
    radius, angle = np.hypot(xx, yy), np.arctan2(yy, xx)
    out = np.empty((count, 1, size, size), np.float32)
    for i in range(count):
        arms = np.cos(6 * angle + rng.uniform(0, 2 * np.pi))
        reach = rng.uniform(0.5, 0.9)
        rings = np.cos(rng.uniform(6, 16) * radius + rng.uniform(0, 6.28))
        shape = 1 / (1 + np.exp(-14 * (reach - radius - 0.3 * (1 - arms))))
        out[i, 0] = shape * (0.75 + 0.25 * rings)
    return torch.from_numpy(out * 2 - 1)
