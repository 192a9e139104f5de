"""Land-cover tiles: blobs of classes with different spectra in four bands."""

import numpy as np
import torch
from scipy.ndimage import gaussian_filter
from torch.utils.data import Dataset


class Tiles(Dataset):
    def __init__(self, count: int, side: int, seed: int, classes: int = 6):
        rng = np.random.default_rng(seed)
        spectra = rng.uniform(-1, 1, size=(classes, 4))
        self.images = np.empty((count, 4, side, side), dtype=np.float32)
        self.labels = np.empty(count, dtype=np.int64)
        for i in range(count):
            fields = gaussian_filter(rng.normal(size=(classes, side, side)), sigma=(0, 4, 4))
            cover = fields.argmax(0)
            self.labels[i] = np.bincount(cover.ravel(), minlength=classes).argmax()
            self.images[i] = spectra[cover].transpose(2, 0, 1) + rng.normal(0, 0.3, size=(4, side, side))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = torch.from_numpy(self.images[index])
        turn = (index * 31) % 4
        if turn:
            image = torch.rot90(image, turn, (1, 2))
        return image, int(self.labels[index])
