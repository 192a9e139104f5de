"""Land-cover tiles: one archive on disk, read by a map-style dataset."""

from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler


def write_archive(cfg, seed):
    root = Path(__file__).parent / cfg.root
    root.mkdir(exist_ok=True)
    path = root / f"tiles_{cfg.tiles}_{cfg.bands}x{cfg.size}_{seed}.npz"
    if path.exists():
        return path
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, cfg.classes, cfg.tiles)
    spectra = rng.normal(0.0, 0.6, (cfg.classes, cfg.bands))
    yy, xx = np.mgrid[0 : cfg.size, 0 : cfg.size] / cfg.size
    tiles = np.empty((cfg.tiles, cfg.bands, cfg.size, cfg.size), dtype=np.uint16)
    for i, label in enumerate(labels):
        fx, fy = rng.uniform(1, 3, 2) + 0.5 * label
        texture = np.sin(2 * np.pi * (fx * xx + fy * yy + rng.uniform()))
        noise = rng.normal(0, 0.8, (cfg.bands, cfg.size, cfg.size))
        raw = spectra[label][:, None, None] + 0.4 * texture + noise
        tiles[i] = np.clip(2000 + 500 * raw, 0, 9999).astype(np.uint16)
    np.savez_compressed(path, tiles=tiles, labels=labels.astype(np.int64))
    return path


class TileDataset(Dataset):
    def __init__(self, path, cfg):
        self.path = path
        self.cfg = cfg
        self._tiles = None
        self._labels = None

    def _open(self):
        with np.load(self.path) as archive:
            self._tiles = archive["tiles"]
            self._labels = archive["labels"]

    def __len__(self):
        return self.cfg.tiles

    def __getitem__(self, key):
        index, draw = key
        if self._tiles is None:
            self._open()
        rng = np.random.default_rng(draw)
        top, left = rng.integers(0, self.cfg.size - self.cfg.crop + 1, 2)
        tile = self._tiles[index, :, top : top + self.cfg.crop, left : left + self.cfg.crop]
        tile = (tile.astype(np.float32) - 2000.0) / 500.0
        if rng.random() < 0.5:
            tile = tile[:, :, ::-1]
        return torch.from_numpy(tile.copy()), int(self._labels[index])


class EpochSampler(Sampler):
    """Yields (index, augmentation seed) pairs in an order fixed by the epoch."""

    def __init__(self, length, seed):
        self.length = length
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return self.length

    def __iter__(self):
        rng = np.random.default_rng((self.seed, self.epoch))
        order = rng.permutation(self.length)
        draws = rng.integers(0, 2**31, self.length)
        return iter(list(zip(order.tolist(), draws.tolist())))


def make_loader(dataset, sampler, cfg):
    return DataLoader(
        dataset,
        batch_size=cfg.batch_size,
        sampler=sampler,
        num_workers=cfg.num_workers,
        prefetch_factor=cfg.prefetch_factor if cfg.num_workers else None,
        persistent_workers=cfg.persistent_workers and cfg.num_workers > 0,
        drop_last=cfg.drop_last,
    )
