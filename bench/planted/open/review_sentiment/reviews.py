import os

import torch
from torch.utils.data import Dataset

FAST = os.environ.get("PLANTED_FIX") == "1"
MAX_LENGTH = 512
PAD = 0


class Reviews(Dataset):
    def __init__(self, n=1500, vocab=5000):
        g = torch.Generator().manual_seed(12)
        lengths = torch.randint(20, 70, (n,), generator=g).tolist()
        self.labels = torch.randint(0, 2, (n,), generator=g)
        self.ids = [torch.randint(1, vocab // 2, (k,), generator=g) + y * 1200 for k, y in zip(lengths, self.labels.tolist(), strict=True)]

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return self.ids[i], self.labels[i]


def collate(batch):
    width = max(len(ids) for ids, _ in batch) if FAST else MAX_LENGTH
    out = torch.full((len(batch), width), PAD)
    for row, (ids, _) in zip(out, batch, strict=True):
        row[: len(ids)] = ids
    return out, torch.stack([y for _, y in batch])
