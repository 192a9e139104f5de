import numpy as np
import torch
from torch.utils.data import Dataset

from . import register


@register("data", "clicks")
class ClickLog(Dataset):
    def __init__(self, users, items, history, events, seed):
        rng = np.random.default_rng(seed)
        self.items = items
        taste = rng.integers(0, 50, users)
        rank = rng.zipf(1.3, events * 2)
        rank = rank[rank < items // 50][:events]
        self.user = rng.integers(0, users, len(rank))
        self.pos = (rank * 50 + taste[self.user]) % items
        hist = rng.zipf(1.3, (users, history)) % (items // 50)
        self.hist = (hist * 50 + taste[:, None]) % items
        self.counts = np.bincount(self.pos, minlength=items) + 1
        self.negatives = None

    def __len__(self):
        return len(self.pos)

    def __getitem__(self, i):
        u = self.user[i]
        neg = self.negatives.draw()
        return {
            "user": torch.tensor(u),
            "history": torch.from_numpy(self.hist[u]),
            "items": torch.from_numpy(np.concatenate([self.pos[i : i + 1], neg])),
        }
