import torch
from torch import nn


class Pluck(nn.Module):
    """A junction feels its neighbours."""

    def __init__(self, width):
        super().__init__()
        self.own, self.felt = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.mix, self.norm = nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, h, ties, there):
        wave = torch.relu(self.own(h) + ties @ self.felt(h))
        return (h + self.mix(self.norm(wave))) * there


class WebNet(nn.Module):
    def __init__(self, features, species, width=96, depth=3):
        super().__init__()
        self.enter = nn.Linear(features, width)
        self.plucks = nn.ModuleList(Pluck(width) for _ in range(depth))
        self.tell = nn.Linear(2 * width, species)

    def forward(self, x, ties, there):
        h = self.enter(x) * there
        for pluck in self.plucks:
            h = pluck(h, ties, there)
        mean = h.sum(1) / there.sum(1)
        top = h.masked_fill(there == 0, -1e4).amax(1)
        return self.tell(torch.cat([mean, top], 1))
