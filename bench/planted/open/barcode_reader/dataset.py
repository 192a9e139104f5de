import os
import random

import numpy as np
import torch
from torch.utils.data import Dataset

FAST = os.environ.get("PLANTED_FIX") == "1"


class Barcodes(Dataset):
    """Run-length coded bars; decoded to rows of 4096 with a jitter of the print."""

    def __init__(self, n=1200):
        rng = random.Random(5)
        self.codes = [[(rng.randint(1, 9), rng.randint(0, 1)) for _ in range(900)] for _ in range(n)]
        self.labels = [sum(bit for _, bit in code[:40]) % 6 for code in self.codes]

    def __len__(self):
        return len(self.codes)

    def decode(self, code, stretch):
        if FAST:
            runs = np.array([int(length * stretch + 0.5) or 1 for length, _ in code])
            row = np.repeat(np.array([bit for _, bit in code], dtype=np.float32), runs)[:4096]
            return torch.from_numpy(np.pad(row, (0, 4096 - len(row))))
        row = []
        for length, bit in code:
            for _ in range(int(length * stretch + 0.5) or 1):
                row.append(float(bit))
        row = row[:4096]
        while len(row) < 4096:
            row.append(0.0)
        return torch.tensor(row)

    def __getitem__(self, i):
        return self.decode(self.codes[i], 0.8 + 0.3 * float(torch.rand(()))), self.labels[i]
