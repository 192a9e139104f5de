"""Aerial pictures of vineyards: rows of vines on bare soil, and the mask of the rows."""

import numpy as np
import torch
from torch.utils.data import TensorDataset


def pictures(count: int, size: int = 32, seed: int = 0) -> TensorDataset:
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:size, :size]
    images, masks = [], []
    for _ in range(count):
        angle, gap, shift = rng.uniform(0, np.pi), rng.uniform(5, 9), rng.uniform(0, 9)
        across = x * np.cos(angle) + y * np.sin(angle) + shift
        rows = (across % gap) < gap * 0.35
        gaps = rng.random((size // 4, size // 4)) < 0.15
        rows &= ~np.kron(gaps, np.ones((4, 4), bool))
        soil = np.stack([0.5 + 0.1 * rng.standard_normal((size, size)) for _ in range(3)])
        soil[1] += 0.25 * rows
        soil[0] -= 0.12 * rows
        images.append(soil)
        masks.append(rows)
    return TensorDataset(torch.tensor(np.array(images), dtype=torch.float32), torch.tensor(np.array(masks), dtype=torch.float32))
