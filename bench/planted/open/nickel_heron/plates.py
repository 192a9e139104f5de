"""Synthetic 20x20 pictures of cast plates: six kinds of defects on a grainy ground."""

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset


def _paint(kind, rng, side=20):
    yy, xx = np.mgrid[0:side, 0:side].astype(np.float32)
    cx, cy = rng.uniform(6, side - 6, size=2)
    r = np.hypot(xx - cx, yy - cy)
    if kind == 0:
        mark = np.zeros_like(r)
    elif kind == 1:
        mark = (r < rng.uniform(2, 4)).astype(np.float32)
    elif kind == 2:
        mark = (np.abs(r - rng.uniform(4, 7)) < 1.0).astype(np.float32)
    else:
        angle = {3: 0.0, 4: np.pi / 2, 5: np.pi / 4}[kind] + rng.normal(0, 0.1)
        along = np.abs((xx - cx) * np.sin(angle) - (yy - cy) * np.cos(angle))
        mark = (along < 1.0).astype(np.float32)
    return mark * rng.uniform(0.6, 1.2) + rng.normal(0, 0.45, size=r.shape).astype(np.float32)


def make_loader(count, batch_size, seed):
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 6, size=count)
    images = np.stack([_paint(int(k), rng) for k in kinds]).astype(np.float32)
    data = TensorDataset(torch.from_numpy(images).unsqueeze(1), torch.from_numpy(kinds))
    order = torch.Generator().manual_seed(seed)
    return DataLoader(data, batch_size=batch_size, shuffle=True, drop_last=True, generator=order)
