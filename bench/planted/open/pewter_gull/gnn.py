import torch
from torch import nn


class GraphLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)
        self.own = nn.Linear(width, width)

    def forward(self, h, a):
        z = self.norm(h)
        return h + torch.relu(torch.bmm(a, self.mix(z)) + self.own(z))


class GraphNet(nn.Module):
    def __init__(self, kinds, width, depth):
        super().__init__()
        self.atom = nn.Embedding(kinds, width)
        self.layers = nn.ModuleList(GraphLayer(width) for _ in range(depth))
        self.trunk = nn.Sequential(nn.Linear(width, width), nn.GELU())
        self.head = nn.Linear(width, 2)

    def forward(self, atom, a):
        h = self.atom(atom)
        for layer in self.layers:
            h = layer(h, a)
        return self.head(self.trunk(h).mean(1))
