"""Height strips of an airborne laser survey, stored one .npy file per flight line."""

import os
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

READ_MODE = "r" if os.environ.get("PLANTED_FIX") == "1" else None


def fly(folder: Path, lines: int = 4, shape=(2400, 5000)) -> list[Path]:
    """Writes synthetic strips: rolling ground, with houses."""
    folder.mkdir(exist_ok=True)
    paths = []
    for line in range(lines):
        rng = np.random.default_rng(line)
        y, x = np.linspace(0, 9, shape[0], dtype=np.float32)[:, None], np.linspace(0, 30, shape[1], dtype=np.float32)[None]
        ground = 3 * np.sin(x + line) * np.cos(y) + 0.1 * rng.standard_normal(shape, dtype=np.float32)
        for _ in range(900):
            r, c, h, w = rng.integers(0, shape[0] - 30), rng.integers(0, shape[1] - 30), *rng.integers(8, 30, 2)
            ground[r : r + h, c : c + w] += rng.uniform(2, 8)
        path = folder / f"line_{line}.npy"
        np.save(path, ground.astype(np.float32))
        paths.append(path)
    return paths


def load_strip(path: Path) -> np.ndarray:
    return np.load(path, mmap_mode=READ_MODE)


class StripPatches(Dataset):
    """Random patches; the target is the patch without its noise, taken as a local mean."""

    def __init__(self, paths: list[Path], size: int = 48, length: int = 4000):
        self.paths, self.size, self.length = paths, size, length
        rng = np.random.default_rng(99)
        self.where = [
            (int(rng.integers(len(paths))), int(rng.integers(2400 - size)), int(rng.integers(5000 - size))) for _ in range(length)
        ]

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        line, row, col = self.where[i]
        strip = load_strip(self.paths[line])
        patch = torch.from_numpy(np.array(strip[row : row + self.size, col : col + self.size]))
        patch = (patch - patch.mean()) / 4
        return patch[None]
