import os

import numpy as np
import torch
from torch.utils.data import Dataset

from clips import make_clips
from frontend import LogMel

FIXED = os.environ.get("PLANTED_FIX") == "1"


class SpecMask:
    def __init__(self, time_mask, freq_mask, gain_db, seed):
        self.time_mask, self.freq_mask, self.gain_db = time_mask, freq_mask, gain_db
        self.rng = np.random.default_rng(seed)

    def __call__(self, spec):
        spec = spec + self.rng.uniform(-self.gain_db, self.gain_db) / 20.0
        m, t = spec.shape
        w = int(self.rng.integers(0, self.time_mask + 1))
        s = int(self.rng.integers(0, t - w))
        spec[:, s : s + w] = 0.0
        h = int(self.rng.integers(0, self.freq_mask + 1))
        s = int(self.rng.integers(0, m - h))
        spec[s : s + h] = 0.0
        return spec


class CommandClips(Dataset):
    def __init__(self, cfg, split, seed):
        d = cfg["data"]
        count = d["clips"] if split == "train" else d["val_clips"]
        self.waves, self.labels = make_clips(count, d["classes"], d["sample_rate"], d["seconds"], seed)
        self.frontend = LogMel(d["sample_rate"], **d["frontend"])
        self.augment = SpecMask(**d["augment"], seed=seed + 1) if split == "train" else None
        if FIXED:
            self.specs = [self.frontend(w) for w in self.waves]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        if FIXED:
            spec = self.specs[i]
        else:
            spec = self.frontend(self.waves[i])
        if self.augment is not None:
            spec = self.augment(spec)
        return torch.from_numpy(spec).unsqueeze(0), int(self.labels[i])
