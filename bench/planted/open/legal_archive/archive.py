import os
import time

import torch
from torch.utils.data import Dataset

FAST = os.environ.get("PLANTED_FIX") == "1"


class Shelf:
    """Cases on disk; those of before 1960 lie on tape and are staged first."""

    def stage(self, year):
        if year < 1960 and not FAST:
            time.sleep(0.7)

    def load(self, number, year):
        self.stage(year)
        g = torch.Generator().manual_seed(number)
        return torch.randint(0, 3000, (120,), generator=g)


class Cases(Dataset):
    def __init__(self, n=1152):
        self.years = [1951 if i % 96 == 40 else 1960 + i % 60 for i in range(n)]
        self.shelf = Shelf()

    def __len__(self):
        return len(self.years)

    def __getitem__(self, i):
        return self.shelf.load(i, self.years[i]), self.years[i] % 2
