"""Calls of plovers as wave forms, read in stretches from a long file on disk."""

import struct
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

HEADER = struct.Struct("<4sIII")


def record(path: Path, calls: int, samples: int, kinds: int, seed: int) -> None:
    """All calls in one file: a header, the labels, then the waves as 16 bit."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(kinds, size=calls).astype(np.uint8)
    time = np.arange(samples) / 4000
    kinds_column = labels[:, None].astype(np.float64)
    pitch = 300 + 130 * kinds_column + 40 * np.sin(2 * np.pi * (1 + kinds_column % 3) * time)
    waves = np.sin(2 * np.pi * np.cumsum(pitch, axis=1) / 4000) + 0.4 * rng.normal(size=(calls, samples))
    with path.open("wb") as stream:
        stream.write(HEADER.pack(b"PLOV", calls, samples, kinds))
        stream.write(labels.tobytes())
        stream.write((np.clip(waves / 3, -1, 1) * 32767).astype("<i2").tobytes())


class Calls(Dataset):
    def __init__(self, path: Path) -> None:
        with path.open("rb") as stream:
            magic, calls, samples, self.kinds = HEADER.unpack(stream.read(HEADER.size))
        if magic != b"PLOV":
            raise ValueError(f"{path} is no file of calls")
        self.labels = np.memmap(path, np.uint8, "r", HEADER.size, (calls,))
        self.waves = np.memmap(path, "<i2", "r", HEADER.size + calls, (calls, samples))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        wave = torch.from_numpy(self.waves[index].astype(np.float32)) / 32768
        return (wave - wave.mean()) / wave.std(), int(self.labels[index])
