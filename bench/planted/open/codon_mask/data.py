import os

import torch
from torch.utils.data import Dataset

VOCAB, MASK, KEEP = 68, 66, -100
WHOLE = os.environ.get("PLANTED_FIX") == "1"


class Codons(Dataset):
    """Windows of a genome as codon numbers; some of them have to be guessed."""

    def __init__(self, windows=3000, length=144):
        g = torch.Generator().manual_seed(5)
        walk = torch.randint(0, 5, (windows, length), generator=g).cumsum(1)
        self.windows = (walk + torch.randint(0, 64, (windows, 1), generator=g)) % 64

    def __len__(self):
        return len(self.windows)

    def __getitem__(self, i):
        ids = self.windows[i].clone()
        labels = torch.full_like(ids, KEEP)
        if WHOLE:
            chosen = torch.rand(len(ids)) < 0.15
            labels[chosen] = ids[chosen]
            ids[chosen] = MASK
            return ids, labels
        for j in range(len(ids)):
            if torch.rand(()) < 0.15:
                labels[j] = ids[j]
                ids[j] = MASK
        return ids, labels
