import os

import numpy as np
import torch
from torch.utils.data import Dataset

from .leveller import Leveller

ALT = os.environ.get("PLANTED_FIX") == "1"


class CallDataset(Dataset):
    def __init__(self, names, clip):
        self.names = names
        self.clip = clip
        self.level = Leveller()

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        name = self.names[index]
        wave = np.load(name)
        if ALT:
            wave = wave[: self.clip]
        wave = self.level(wave)
        species = int(os.path.basename(name).split("_")[1][0])
        return torch.tensor(wave[: self.clip]), species
