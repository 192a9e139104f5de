"""Land-cover tiles: RGB uint8 image + class mask, packed in npz shards."""

import functools
import os
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

NUM_CLASSES = 5
PALETTE = np.array([[60, 110, 50], [190, 180, 120], [40, 70, 140], [130, 130, 130], [90, 160, 80]], np.float32)


def _draw_tile(rng, size):
    yy, xx = np.mgrid[0:size, 0:size].astype(np.float32) / size
    mask = np.zeros((size, size), np.uint8)
    for _ in range(rng.integers(3, 7)):
        cx, cy = rng.random(2)
        rx, ry = rng.uniform(0.08, 0.35, 2)
        mask[((xx - cx) / rx) ** 2 + ((yy - cy) / ry) ** 2 < 1] = rng.integers(1, NUM_CLASSES)
    image = PALETTE[mask] + rng.normal(0, 18, (size, size, 3))
    return np.clip(image, 0, 255).astype(np.uint8), mask


def prepare(root, num_shards=3, per_shard=240, size=64, seed=0):
    root = Path(root)
    root.mkdir(parents=True, exist_ok=True)
    for s in range(num_shards):
        path = root / f"tiles_{s:02d}.npz"
        if not path.exists():
            rng = np.random.default_rng((seed, s))
            images, masks = zip(*[_draw_tile(rng, size) for _ in range(per_shard)])
            np.savez(path, image=np.stack(images), mask=np.stack(masks))
    return sorted(root.glob("tiles_*.npz"))


class TileDataset(Dataset):
    def __init__(self, shards, hflip=True, seed=0):
        self.shards = list(shards)
        self.index = []
        for s, path in enumerate(self.shards):
            with np.load(path) as z:
                self.index += [(s, row) for row in range(len(z["mask"]))]
        flips = np.random.default_rng(seed).random(len(self.index)) < 0.5
        self.flips = flips if hflip else np.zeros_like(flips)
        if os.environ.get("PLANTED_FIX") == "1":
            self._read = functools.lru_cache(maxsize=None)(self._read)

    def __len__(self):
        return len(self.index)

    def _read(self, shard):
        with np.load(self.shards[shard]) as z:
            return z["image"], z["mask"]

    def __getitem__(self, i):
        shard, row = self.index[i]
        images, masks = self._read(shard)
        image = torch.from_numpy(images[row]).permute(2, 0, 1).float().div_(255)
        mask = torch.from_numpy(masks[row]).long()
        if self.flips[i]:
            image, mask = image.flip(-1), mask.flip(-1)
        return image, mask
