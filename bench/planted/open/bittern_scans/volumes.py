"""Synthetic scans: ellipsoids in noise, and slices of them with elastic distortion."""

import numpy as np
import torch
from scipy.ndimage import gaussian_filter, map_coordinates
from torch.utils.data import Dataset


def make_volume(rng, side: int):
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, side)] * 3, indexing="ij"))
    mask = np.zeros((side, side, side), dtype=bool)
    for _ in range(3):
        centre, radius = rng.uniform(-0.5, 0.5, size=(3, 1, 1, 1)), rng.uniform(0.2, 0.5, size=(3, 1, 1, 1))
        mask |= (((grid - centre) / radius) ** 2).sum(0) < 1
    volume = mask * rng.uniform(0.5, 1.0) + rng.normal(0, 0.3, size=mask.shape)
    return volume.astype(np.float32), mask.astype(np.float32)


class ElasticSlices(Dataset):
    def __init__(self, plan):
        rng = np.random.default_rng(plan.seed)
        self.plan = plan
        self.volumes = [make_volume(rng, plan.side) for _ in range(plan.volumes)]
        self.base = np.stack(np.meshgrid(*[np.arange(plan.side)] * 2, indexing="ij")).astype(np.float32)

    def __len__(self):
        return self.plan.slices_per_epoch

    def warp(self, rng):
        push = rng.normal(size=(2, self.plan.side, self.plan.side))
        return self.base + 12.0 * gaussian_filter(push, sigma=(0, 5, 5))

    def __getitem__(self, index):
        rng = np.random.default_rng((self.plan.seed, index))
        volume, mask = self.volumes[int(rng.integers(len(self.volumes)))]
        depth = int(rng.integers(1, self.plan.side - 1))
        where = self.warp(rng)
        # a slice and its neighbours are three channels
        image = np.stack([map_coordinates(volume[depth + d], where, order=3, mode="nearest") for d in (-1, 0, 1)])
        truth = map_coordinates(mask[depth], where, order=0, mode="nearest")
        return torch.from_numpy(image.astype(np.float32)), torch.from_numpy(truth)
