import os

import numpy as np
import torch
from torch.utils.data import Dataset

SIDE = 40


class NestCrops(Dataset):
    def __init__(self, n=640):
        rng = np.random.default_rng(0)
        self.y = rng.integers(0, 2, n)
        self.x = rng.random((n, SIDE, SIDE)).astype(np.float32)
        self.x[self.y == 1, 10:30, 15:25] += 0.5
        self.rng = np.random.default_rng(1)

    def __len__(self):
        return len(self.y)

    def bend(self, img, shift, gamma):
        """Row-wise shear with wrap-around, then gamma."""
        if os.environ.get("PLANTED_FIX") == "1":
            r = np.arange(SIDE)
            cols = (r[None, :] + (shift * r).astype(int)[:, None]) % SIDE
            return np.power(np.minimum(img[r[:, None], cols], 1.5), gamma).astype(np.float32)
        out = np.empty_like(img)
        for r in range(SIDE):
            offset = int(shift * r)
            for c in range(SIDE):
                value = float(img[r, (c + offset) % SIDE])
                out[r, c] = min(value, 1.5) ** gamma
        return out

    def __getitem__(self, i):
        shift, gamma = self.rng.uniform(-0.3, 0.3), self.rng.uniform(0.8, 1.2)
        return torch.from_numpy(self.bend(self.x[i], shift, gamma))[None], int(self.y[i])
