import torch
from torch import nn
from torch.nn import functional as F


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own = nn.Linear(width, width)
        self.near = nn.Linear(width, width, bias=False)
        self.norm = nn.LayerNorm(width)

    def forward(self, h, adj):
        return h + F.silu(self.norm(self.own(h) + torch.bmm(adj, self.near(h))))


class PropertyNet(nn.Module):
    def __init__(self, kinds, width=64, depth=4):
        super().__init__()
        self.atoms = nn.Embedding(kinds, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(depth))
        self.gate = nn.Linear(width, width)
        self.readout = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, kinds, adj, mask):
        h = self.atoms(kinds)
        for layer in self.layers:
            h = layer(h, adj)
        pooled = (torch.sigmoid(self.gate(h)) * h * mask).sum(1) / mask.sum(1)
        return self.readout(pooled).squeeze(-1)
