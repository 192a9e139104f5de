import os
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

FIX = os.environ.get("PLANTED_FIX") == "1"


class CallDataset(Dataset):
    """Log-mel features of one split, normalised per band, with SpecAugment masks when training."""

    def __init__(self, folder, split, augment=False):
        folder = Path(folder)
        self.archive = np.load(folder / f"{split}.npz")
        if FIX:
            self.archive = dict(self.archive)
        self.labels = torch.from_numpy(self.archive["labels"])
        stats = np.load(folder / "stats.npz")
        self.mean = torch.from_numpy(stats["mean"]).unsqueeze(1)
        self.std = torch.from_numpy(stats["std"]).unsqueeze(1)
        self.augment = augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        spec = torch.from_numpy(self.archive["features"][index])
        spec = (spec - self.mean) / self.std
        if self.augment:
            spec = self.mask(spec)
        return spec.unsqueeze(0), self.labels[index]

    @staticmethod
    def mask(spec, max_bands=6, max_frames=8):
        bands, frames = spec.shape
        w, h = torch.randint(0, max_frames, (2,)).tolist()
        t0 = int(torch.randint(0, frames - w, ()))
        f0 = int(torch.randint(0, bands - min(h, max_bands), ()))
        spec[:, t0:t0 + w] = 0.0
        spec[f0:f0 + min(h, max_bands)] = 0.0
        return spec
