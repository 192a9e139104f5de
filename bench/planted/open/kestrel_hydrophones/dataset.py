import json
import os
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

from make_data import CHANNELS, LENGTH

FIX = os.environ.get("PLANTED_FIX") == "1"


def read_array(folder: Path) -> tuple[np.ndarray, dict]:
    meta = json.loads((folder / "meta.json").read_text())
    array = np.empty((CHANNELS, LENGTH), dtype=np.int16)
    for channel in range(CHANNELS):
        with open(folder / f"ch{channel:02d}.raw", "rb") as handle:
            array[channel] = np.frombuffer(handle.read(), dtype="<i2")
    return array, meta


class HydrophoneDataset(Dataset):
    """One item: a random window over all hydrophones, and the caller's species."""

    def __init__(self, root: Path, window: int, seed: int):
        self.folders = [root / name for name in (root / "index.txt").read_text().split()]
        self.window = window
        self.rng = np.random.default_rng(seed)
        if FIX:
            self.held = [read_array(folder) for folder in self.folders]

    def __len__(self) -> int:
        return len(self.folders)

    def __getitem__(self, index: int):
        if FIX:
            array, meta = self.held[index]
        else:
            array, meta = read_array(self.folders[index])
        start = int(self.rng.integers(0, LENGTH - self.window + 1))
        piece = array[:, start : start + self.window].astype(np.float32) / 8192.0
        piece *= 10 ** (meta["gain_db"] / 20.0) * (1.0 + 0.1 * float(self.rng.standard_normal()))
        if self.rng.random() < 0.3:
            first = int(self.rng.integers(0, CHANNELS - 4))
            piece[first : first + 4] = 0.0  # a dead string
        return torch.from_numpy(piece), meta["label"]
