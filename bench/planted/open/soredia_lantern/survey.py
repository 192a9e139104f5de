"""Patches for training: a plate bent a little, as if taken with another lens and from another angle."""

import os

import numpy as np
import torch
from torch.utils.data import Dataset

PATCH = 64


class Bend:
    """A smooth random displacement, from a handful of plane waves, and a turn about the middle."""

    def __init__(self, rng, side):
        self.side = side
        self.wave = rng.normal(0, 2.5, (3, 2)) * np.pi * 2 / side
        self.phase, self.push = rng.uniform(0, 2 * np.pi, 3), rng.normal(0, 2.2, (3, 2))
        turn = rng.uniform(-0.35, 0.35)
        self.turn = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])

    def source(self, y, x):
        middle = (self.side - 1) / 2
        at = np.stack([y - middle, x - middle], -1) @ self.turn.T + middle
        for wave, phase, push in zip(self.wave, self.phase, self.push):
            at += np.sin(y * wave[0] + x * wave[1] + phase)[..., None] * push
        return np.clip(at, 0, self.side - 1.001)


def look_up(plate, at):
    low = at.astype(np.int64)
    fy, fx = np.moveaxis((at - low).astype(np.float32)[..., None], -2, 0)
    y, x = low[..., 0], low[..., 1]
    upper = plate[y, x] * (1 - fx) + plate[y, x + 1] * fx
    lower = plate[y + 1, x] * (1 - fx) + plate[y + 1, x + 1] * fx
    return upper * (1 - fy) + lower * fy


def nearest(cover, at):
    y, x = np.moveaxis(np.rint(at).astype(np.int64), -1, 0)
    return cover[y, x]


class Quadrats(Dataset):
    def __init__(self, plates, covers, patches, seed):
        self.plates, self.covers, self.patches, self.seed = plates, covers, patches, seed

    def __len__(self):
        return self.patches

    def view(self, bend, top, left):
        """Where in the plate the pixels of the patch come from."""
        if os.environ.get("PLANTED_FIX") == "1":
            y, x = np.mgrid[top : top + PATCH, left : left + PATCH].astype(np.float64)
            return bend.source(y, x)
        y, x = np.mgrid[: bend.side, : bend.side].astype(np.float64)
        return bend.source(y, x)[top : top + PATCH, left : left + PATCH]

    def __getitem__(self, n):
        rng = np.random.default_rng((self.seed, n))
        which = rng.integers(len(self.plates))
        plate, cover = self.plates[which], self.covers[which]
        bend = Bend(rng, plate.shape[0])
        top, left = rng.integers(0, plate.shape[0] - PATCH, 2)
        at = self.view(bend, top, left)
        patch = look_up(plate, at) * rng.uniform(0.85, 1.15)
        return torch.from_numpy(patch.astype(np.float32)).permute(2, 0, 1), torch.from_numpy(nearest(cover, at).astype(np.int64))
