"""Scenes as the radar's processor hands them over: rows, columns, then (height, slope, echo)."""

import numpy as np
import torch


def make_scenes(count, side, seed):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:side, 0:side] / side
    scenes = np.empty((count, side, side, 3), np.float32)
    for scene in scenes:
        wind, pitch, bend = rng.uniform(0, np.pi), rng.uniform(4, 9), rng.uniform(0.2, 0.8)
        along = x * np.cos(wind) + y * np.sin(wind) + bend * 0.1 * np.sin(6 * (y * np.cos(wind) - x * np.sin(wind)))
        phase = (along * pitch) % 1
        scene[..., 0] = np.where(phase < 0.7, phase / 0.7, (1 - phase) / 0.3)
        scene[..., 1] = np.gradient(scene[..., 0], axis=1) * 4
        scene[..., 2] = 0.5 * scene[..., 1] + rng.normal(0, 0.1, (side, side))
    return scenes


class Scenes:
    def __init__(self, count, side, seed):
        self.rasters = torch.from_numpy(make_scenes(count, side, seed))
        self.rng = torch.Generator().manual_seed(seed)
        self.side = side

    def draw(self, n):
        """Scenes with a swath in the shadow, and the whole height."""
        rows = torch.randint(len(self.rasters), (n,), generator=self.rng)
        whole = self.rasters[rows]
        edge = torch.randint(self.side // 2, (n, 1), generator=self.rng)
        column = torch.arange(self.side)
        lit = ((column < edge) | (column > edge + self.side // 4)).float()
        seen = whole * lit[:, None, :, None]
        return seen.permute(0, 3, 1, 2), whole[..., :1].permute(0, 3, 1, 2)
