"""Framed records: a header (length of the clip, species, gain) before the samples as 16 bit integers."""

import os
import struct
from collections.abc import Iterator

import fsspec
import numpy as np
import torch
from torch.utils.data import IterableDataset

from . import lake  # noqa: F401  registers lake://

FIXED = os.environ.get("PLANTED_FIX") == "1"
HEADER = struct.Struct("<IIf")


def write_shard(path: str, rng: np.random.Generator, count: int, length: int, species: int) -> None:
    with open(path, "wb") as out:
        for _ in range(count):
            name = int(rng.integers(species))
            at = np.arange(length) / length
            call = np.sin(2 * np.pi * (20 + 9 * name) * at + 6 * rng.random()) * np.exp(-3 * at)
            wave = np.clip((call + 0.4 * rng.standard_normal(length)) * 8000, -32767, 32767).astype("<i2")
            out.write(HEADER.pack(length, name, 1 / 8000))
            out.write(wave.tobytes())


def stream(handle) -> Iterator[tuple[np.ndarray, int]]:
    while head := handle.read(HEADER.size):
        length, name, gain = HEADER.unpack(head)
        body = handle.read(2 * length)
        yield np.frombuffer(body, dtype="<i2").astype(np.float32) * gain, name


def mount(url: str):
    """Clips are never read twice in a pass, so there is nothing worth keeping of a shard."""
    files, path = fsspec.url_to_fs(url)
    if FIXED:
        return files.open(path, "rb", block_size=1 << 20, cache_type="readahead")
    else:
        return files.open(path, "rb", cache_type="none")


class Clips(IterableDataset):
    def __init__(self, shards: list[str], seed: int) -> None:
        self.shards, self.seed = shards, seed

    def __iter__(self):
        rng = np.random.default_rng(self.seed)
        while True:
            for number in rng.permutation(len(self.shards)):
                with mount(f"lake://{self.shards[number]}") as handle:
                    for wave, name in stream(handle):
                        yield torch.from_numpy(wave), name
