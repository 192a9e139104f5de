import torch
import torch.nn.functional as F
from torch import nn

from khipu import FEATURES, PROVINCES


class Neighbours(nn.Module):
    """Mixes each cord with those beside it on the primary cord."""

    def __init__(self, width, reach):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Conv1d(width, 2 * width, 3, padding=reach, dilation=reach)
        self.back = nn.Linear(width, width)

    def forward(self, x, tied):
        a, gate = self.mix((self.norm(x) * tied).transpose(1, 2)).transpose(1, 2).chunk(2, -1)
        return x + self.back(a * torch.sigmoid(gate))


class Reader(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.enter = nn.Linear(FEATURES, width)
        self.layers = nn.ModuleList(Neighbours(width, reach) for reach in (1, 2, 4))
        self.weigh, self.name = nn.Linear(width, 1), nn.Linear(width, PROVINCES)

    def forward(self, cords, tied):
        x = self.enter(cords)
        for layer in self.layers:
            x = layer(x, tied)
        weight = F.softmax(self.weigh(x).masked_fill(tied == 0, -1e9), 1)
        return self.name((weight * x).sum(1))
