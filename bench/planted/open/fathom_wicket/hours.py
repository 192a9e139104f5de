import os

import numpy as np
import torch
from torch.utils.data import Dataset


class Hours(Dataset):
    def __init__(self, reel, kinds):
        self.reel, self.kinds = reel, torch.from_numpy(kinds)

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, hour):
        wave = torch.from_numpy(self.reel.read(hour))
        return (wave - wave.mean(1, keepdim=True)) / (wave.std(1, keepdim=True) + 1e-6), self.kinds[hour]

    def __getitems__(self, hours):
        turn = np.argsort(hours) if os.environ.get("PLANTED_FIX") == "1" else range(len(hours))
        found = [None] * len(hours)
        for at in turn:
            found[at] = self[hours[at]]
        return found
