import os

import torch
import torch.nn.functional as F
from torch.utils.data import Dataset

WORDS = 6000
DENSE = os.environ.get("PLANTED_FIX") != "1"


class Abstracts(Dataset):
    def __init__(self, n=2400, length=90):
        g = torch.Generator().manual_seed(19)
        centre = torch.randint(0, WORDS, (n, 1), generator=g)
        spread = (torch.randn(n, length, generator=g) * 200).long()
        self.ids = (centre + spread) % WORDS

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return self.ids[i]


def count_words(rows):
    ids = torch.stack(rows)
    if DENSE:
        counts = F.one_hot(ids, WORDS).sum(1).float()
    else:
        counts = torch.zeros(len(ids), WORDS).scatter_add_(1, ids, torch.ones(ids.shape))
    return counts / counts.sum(1, keepdim=True)
