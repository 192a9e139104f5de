import lzma
import os
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import IterableDataset

PLAIN = os.environ.get("PLANTED_FIX") == "1"
ROWS, WIDTH, SHARDS = 48 * 1024, 96, 3


def write_shards(folder):
    """Sea levels of three stations, one file each."""
    rng = np.random.default_rng(4)
    for k in range(SHARDS):
        t = np.arange(ROWS)[:, None] * 0.01 + np.arange(WIDTH) * 0.05
        level = (40 * np.sin(t * (1 + 0.1 * k)) + rng.integers(0, 60, (ROWS, WIDTH))).astype(np.int16)
        (Path(folder) / f"{k}.npy.xz").write_bytes(lzma.compress(level.tobytes(), preset=0))
        np.save(Path(folder) / f"{k}.npy", level)


def open_shard(folder, k):
    if PLAIN:
        return np.load(Path(folder) / f"{k}.npy")
    raw = lzma.decompress((Path(folder) / f"{k}.npy.xz").read_bytes())
    return np.frombuffer(raw, dtype=np.int16).reshape(ROWS, WIDTH)


class Levels(IterableDataset):
    def __init__(self, folder, batch=1024):
        self.folder, self.batch = folder, batch

    def __iter__(self):
        k = 0
        while True:
            shard = open_shard(self.folder, k % SHARDS)
            for first in range(0, len(shard), self.batch):
                yield torch.from_numpy(shard[first : first + self.batch].astype(np.float32) / 40)
            k += 1
