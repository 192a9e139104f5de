import numpy as np
import torch
from torch.utils.data import IterableDataset


class LogStream(IterableDataset):
    """Endless windows of logs with the rock of the middle interval."""

    def __init__(self, registry, window: int, seed: int):
        self.registry, self.window, self.seed = registry, window, seed
        self.scale = np.array([60.0, 2.2, 0.2], dtype=np.float32)[:, None]

    def __iter__(self):
        rng = np.random.default_rng(self.seed)
        half = self.window // 2
        while True:
            well = self.registry.wells[int(rng.integers(len(self.registry)))]
            middle = int(rng.integers(half, len(well.intervals) - half))
            span = slice(middle - half, middle + half)
            logs = np.stack([well.gamma[span], well.density[span], well.porosity[span]]).astype(np.float32)
            logs = logs / self.scale - 1.0
            logs += rng.normal(0, 0.05, size=logs.shape).astype(np.float32)
            yield torch.from_numpy(logs), well.intervals[middle].rock
