import os

import numpy as np
import torch
from torch.utils.data import Dataset

FIX = os.environ.get("PLANTED_FIX")


def median3(image):
    """Median of the 3 x 3 neighbourhood, edges repeated."""
    padded = np.pad(image, 1, mode="edge")
    if FIX == "1":
        stack = [padded[dy : dy + image.shape[0], dx : dx + image.shape[1]] for dy in range(3) for dx in range(3)]
        return np.median(np.stack(stack), axis=0).astype(image.dtype)
    out = np.empty_like(image)
    rows = padded.tolist()
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            window = rows[y][x : x + 3] + rows[y + 1][x : x + 3] + rows[y + 2][x : x + 3]
            window.sort()
            out[y, x] = window[4]
    return out


class Xrays(Dataset):
    def __init__(self, n, seed, train):
        g = np.random.default_rng(seed)
        self.grade = g.integers(0, 3, n)
        self.images = (g.normal(size=(n, 40, 40)) + self.grade[:, None, None]).astype(np.float32)
        self.train = train

    def __len__(self):
        return len(self.grade)

    def __getitem__(self, i):
        image = self.images[i]
        if self.train:
            image = median3(np.roll(image, int(torch.randint(0, 40, ())), axis=1))
        return torch.from_numpy(image)[None], int(self.grade[i])
