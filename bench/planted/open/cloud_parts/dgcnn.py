import os

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

SAVE_MEMORY = os.environ.get("PLANTED_FIX") != "1"


def neighbours(x, k):
    with torch.no_grad():
        return torch.cdist(x, x).topk(k, largest=False).indices


class EdgeConv(nn.Module):
    def __init__(self, inp, out, k=8):
        super().__init__()
        self.k = k
        self.mlp = nn.Sequential(nn.Linear(2 * inp, out), nn.ReLU())

    def forward(self, x):
        b, n, d = x.shape
        index = neighbours(x, self.k).reshape(b, n * self.k, 1).expand(-1, -1, d)
        around = x.gather(1, index).view(b, n, self.k, d)
        edge = torch.cat([x[:, :, None].expand_as(around), around - x[:, :, None]], dim=-1)
        return self.mlp(edge).amax(dim=2)


class PartNet(nn.Module):
    def __init__(self, parts=5):
        super().__init__()
        self.layers = nn.ModuleList([EdgeConv(3, 24), EdgeConv(24, 24), EdgeConv(24, 32)])
        self.head = nn.Linear(32, parts)

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if SAVE_MEMORY else layer(x)
        return self.head(x)
