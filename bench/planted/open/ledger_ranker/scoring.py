import torch
from torch import nn


def make_scorer(width, items, hidden=512):
    return nn.ModuleDict(
        {
            "item": nn.Embedding(items, 64),
            "user": nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 64)),
            "cross": nn.Sequential(nn.Linear(128, hidden), nn.ReLU(), nn.Linear(hidden, 1)),
        }
    )


def score(nets, profile, item):
    pair = torch.cat([nets["user"](profile), nets["item"](item)], dim=1)
    return nets["cross"](pair).squeeze(1)
