"""A stream of windows over the shards, mixed in a buffer."""

import os
import statistics
from pathlib import Path

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from torch.utils.data import IterableDataset

FIX = os.environ.get("PLANTED_FIX") == "1"


def remove_spikes(level: np.ndarray, reach: int) -> np.ndarray:
    """Readings far from the median of the last `reach` ones, in units of their spread, are replaced by it (Hampel)."""
    clean = level.copy()
    if FIX:
        past = sliding_window_view(level, reach, axis=0)[:-1]
        middle = np.median(past, axis=-1)
        spread = np.median(np.abs(past - middle[..., None]), axis=-1)
        bad = np.abs(level[reach:] - middle) > 0.5 + 4.0 * spread
        clean[reach:][bad] = middle[bad]
    else:
        for station in range(level.shape[1]):
            for row in range(reach, level.shape[0]):
                past = level[row - reach : row, station]
                middle = statistics.median(past)
                spread = statistics.median([abs(value - middle) for value in past])
                if abs(level[row, station] - middle) > 0.5 + 4.0 * spread:
                    clean[row, station] = middle
    return clean


class GaugeStream(IterableDataset):
    def __init__(self, paths: list[Path], history: int, horizon: int, reach: int, seed: int):
        self.paths, self.history, self.horizon, self.reach = paths, history, horizon, reach
        self.rng = np.random.default_rng(seed)

    def load(self, path: Path) -> np.ndarray:
        with np.load(path) as archive:
            level = archive["level"]
        level = level + self.rng.normal(0, 0.02, level.shape)  # instrument noise
        return remove_spikes(level, self.reach).astype(np.float32)

    def __iter__(self):
        while True:
            for number in self.rng.permutation(len(self.paths)):
                level = self.load(self.paths[number])
                span = self.history + self.horizon
                for start in self.rng.permutation(len(level) - span + 1):
                    piece = torch.from_numpy(level[start : start + span])
                    yield piece[: self.history], piece[self.history :]
