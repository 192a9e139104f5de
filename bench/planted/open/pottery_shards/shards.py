"""Photographs of pottery shards, drawn from their profile parameters."""

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

KINDS = 9


class Shards(Dataset):
    """Shard `index` looks the same whenever it is asked for, but its lighting differs by epoch."""

    def __init__(self, count: int, size: int, seed: int) -> None:
        self.count, self.size, self.seed = count, size, seed
        axis = np.linspace(-1, 1, size, dtype=np.float32)
        self.y, self.x = np.meshgrid(axis, axis, indexing="ij")

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, key: tuple[int, int]):
        index, epoch = key
        rng = np.random.default_rng((self.seed, index))
        kind = index % KINDS
        radius = np.hypot(self.x, self.y) + 0.1 * np.sin((kind + 2) * np.arctan2(self.y, self.x))
        body = (radius < rng.uniform(0.55, 0.8)).astype(np.float32)
        grooves = 0.5 + 0.5 * np.sin(radius * (8 + 4 * kind))
        light = np.random.default_rng((self.seed, index, epoch)).uniform(0.7, 1.3, (3, 1, 1)).astype(np.float32)
        image = light * (body * grooves)[None] + rng.normal(0, 0.05, (3, self.size, self.size)).astype(np.float32)
        return torch.from_numpy(image.astype(np.float32)), kind


class EpochOrder(Sampler):
    """A new permutation each epoch, and the epoch's number with each index."""

    def __init__(self, count: int, seed: int) -> None:
        self.count, self.seed, self.epoch = count, seed, 0

    def __len__(self) -> int:
        return self.count

    def __iter__(self):
        order = np.random.default_rng((self.seed, self.epoch)).permutation(self.count)
        return iter([(int(index), self.epoch) for index in order])
