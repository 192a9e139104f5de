import glob
import os
import random

import soundfile as sf
import torch
from torch.utils.data import Dataset


class Recordings(Dataset):
    """Crops of wav files; several crops of every recording per epoch."""

    def __init__(self, folder, length=4096, crops=8, train=True):
        self.files = sorted(glob.glob(os.path.join(folder, "*.wav")))
        self.length, self.crops, self.train = length, crops, train

    def __len__(self):
        return len(self.files) * self.crops

    def __getitem__(self, i):
        sound, rate = sf.read(self.files[i // self.crops], dtype="float32")
        if self.train:
            start = random.randint(0, len(sound) - self.length)
        else:
            start = (i % self.crops) * (len(sound) - self.length) // self.crops
        crop = torch.from_numpy(sound[start : start + self.length])
        if self.train:
            crop = crop * random.uniform(0.5, 1.2)
        return crop.unsqueeze(0)
