import math
import os

import numpy as np
import torch
from torch.utils.data import Dataset

FAST = os.environ.get("PLANTED_FIX") == "1"
SIZE = 28


def rotate(image, angle):
    """Rotation about the centre with bilinear interpolation; outside is 0."""
    c, s, mid = math.cos(angle), math.sin(angle), (SIZE - 1) / 2
    if FAST:
        y, x = np.mgrid[0:SIZE, 0:SIZE] - mid
        sy, sx = c * y - s * x + mid, s * y + c * x + mid
        y0, x0 = np.floor(sy).astype(int), np.floor(sx).astype(int)
        fy, fx = sy - y0, sx - x0
        inside = (y0 >= 0) & (x0 >= 0) & (y0 < SIZE - 1) & (x0 < SIZE - 1)
        y0, x0 = y0.clip(0, SIZE - 2), x0.clip(0, SIZE - 2)
        top = image[y0, x0] * (1 - fx) + image[y0, x0 + 1] * fx
        low = image[y0 + 1, x0] * (1 - fx) + image[y0 + 1, x0 + 1] * fx
        return np.where(inside, top * (1 - fy) + low * fy, 0).astype(np.float32)
    out = np.zeros((SIZE, SIZE), dtype=np.float32)
    for i in range(SIZE):
        for j in range(SIZE):
            sy = c * (i - mid) - s * (j - mid) + mid
            sx = s * (i - mid) + c * (j - mid) + mid
            y0, x0 = math.floor(sy), math.floor(sx)
            if 0 <= y0 < SIZE - 1 and 0 <= x0 < SIZE - 1:
                fy, fx = sy - y0, sx - x0
                top = image[y0, x0] * (1 - fx) + image[y0, x0 + 1] * fx
                low = image[y0 + 1, x0] * (1 - fx) + image[y0 + 1, x0 + 1] * fx
                out[i, j] = top * (1 - fy) + low * fy
    return out


class Retinas(Dataset):
    def __init__(self, n=800):
        rng = np.random.default_rng(2)
        self.grades = rng.integers(0, 4, n)
        self.scans = (rng.normal(size=(n, SIZE, SIZE)) * 0.5 + self.grades[:, None, None]).astype(np.float64)

    def __len__(self):
        return len(self.scans)

    def __getitem__(self, i):
        turned = rotate(self.scans[i], float(torch.rand(())) * 6.28)
        return {"pixels": torch.from_numpy(turned)[None], "labels": int(self.grades[i])}
