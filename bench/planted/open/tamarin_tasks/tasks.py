"""Calls of tamarins: one recording, five questions about it."""

import torch
from torch.utils.data import TensorDataset

FEATURES = 96
TASKS = {"caller": 12, "call": 8, "mood": 4, "age": 3, "site": 6}


def calls(count, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(count, FEATURES, generator=g)
    maps = torch.Generator().manual_seed(77)
    labels = [(x @ torch.randn(FEATURES, n, generator=maps) + torch.randn(count, n, generator=g)).argmax(1) for n in TASKS.values()]
    return TensorDataset(x, torch.stack(labels, 1))
