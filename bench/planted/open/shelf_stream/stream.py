import io
import os
import random

import numpy as np
import torch
from torch.utils.data import IterableDataset

FEATURES = 20


def write_scanlog(path, rows, seed):
    """One line per shelf scan: timestamp;shelf;20 weights in grams;stockout within the hour (0/1)."""
    rng = np.random.default_rng(seed)
    with open(path, "w") as f:
        for r in range(rows):
            w = rng.gamma(3.0, 50.0, FEATURES)
            y = int(w[:5].sum() < 700)
            f.write(f"{1700000000 + r * 7};S{r % 91:03d};" + ";".join(f"{v:.1f}" for v in w) + f";{y}\n")


class ScanLog(IterableDataset):
    """Streams the log and shuffles within a window."""

    def __init__(self, path, window=2048, seed=0):
        self.path, self.window, self.seed = path, window, seed

    def _parse(self, lines):
        if os.environ.get("PLANTED_FIX") == "1":
            block = np.loadtxt(io.StringIO("".join(lines)), delimiter=";", usecols=range(2, 3 + FEATURES), dtype=np.float32)
            return list(zip(torch.from_numpy(block[:, :FEATURES] / 100.0), torch.from_numpy(block[:, FEATURES])))
        rows = []
        for line in lines:
            parts = line.strip().split(";")
            weights = torch.tensor([float(p) for p in parts[2:-1]], dtype=torch.float32)
            logged = torch.stack([w / 100.0 for w in weights])
            rows.append((logged, torch.tensor(float(parts[-1]))))
        return rows

    def __iter__(self):
        rng = random.Random(self.seed)
        while True:
            with open(self.path) as f:
                pending = []
                for line in f:
                    pending.append(line)
                    if len(pending) == self.window:
                        rows = self._parse(pending)
                        rng.shuffle(rows)
                        yield from rows
                        pending = []
