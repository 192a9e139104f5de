import os

import torch
from torch.utils.data import Dataset


class Days(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.days = []
        for _ in range(n):
            k = int(torch.randint(20, 60, (1,), generator=g))
            x = torch.rand(k, 6, generator=g)
            self.days.append((x.tolist(), float(x[:, 0].mean() * 3 + x[-1, 1])))

    def __len__(self):
        return len(self.days)

    def __getitem__(self, i):
        if i >= len(self.days):
            raise IndexError(i)
        return self.days[i]


def together(days):
    longest = max(len(arrivals) for arrivals, _ in days)
    x = torch.zeros(len(days), longest, 6)
    mask = torch.zeros(len(days), longest, dtype=torch.bool)
    if os.environ.get("PLANTED_FIX") == "1":
        for b, (arrivals, _) in enumerate(days):
            x[b, : len(arrivals)] = torch.tensor(arrivals)
            mask[b, : len(arrivals)] = True
    else:
        for b, (arrivals, _) in enumerate(days):
            for t, arrival in enumerate(arrivals):
                x[b, t] = torch.tensor(arrival)
                mask[b, t] = True
    return x, mask, torch.tensor([wait for _, wait in days])
