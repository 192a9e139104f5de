"""Pictures of rock faces with lichens on them, and who grows where."""

import numpy as np
import torch

SORTS = 5


def faces(count, size, seed):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:size, 0:size] / size
    hues = rng.uniform(0.2, 0.9, (SORTS, 3))
    pictures = np.empty((count, size, size, 3), np.float32)
    labels = np.zeros((count, size, size), np.int64)
    for picture, label in zip(pictures, labels):
        picture[:] = 0.45 + 0.1 * np.sin(14 * (x * rng.normal() + y * rng.normal()))[..., None]
        for _ in range(12):
            cy, cx, r, sort = rng.uniform(), rng.uniform(), rng.uniform(0.05, 0.2), rng.integers(1, SORTS)
            there = (y - cy) ** 2 + (x - cx) ** 2 < r**2
            label[there], picture[there] = sort, hues[sort]
        picture += rng.normal(0, 0.08, picture.shape)
    return torch.from_numpy(pictures).permute(0, 3, 1, 2), torch.from_numpy(labels)
