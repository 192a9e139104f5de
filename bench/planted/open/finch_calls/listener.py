import torch
import torch.nn.functional as F
from torch import nn


class Mixer(nn.Module):
    """Depthwise over time, then a gated linear unit over channels."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.time = nn.Conv1d(width, width, 7, padding=3, groups=width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        h = self.time(self.norm(x).transpose(1, 2)).transpose(1, 2)
        a, b = self.up(h).chunk(2, -1)
        return x + self.down(F.silu(a) * b)


class Listener(nn.Module):
    def __init__(self, bands, width, layers, species):
        super().__init__()
        self.enter = nn.Linear(bands, width)
        self.mixers = nn.ModuleList([Mixer(width) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.score = nn.Linear(width, 1)
        self.head = nn.Linear(width, species)

    def forward(self, x):
        x = self.enter(x)
        for mixer in self.mixers:
            x = mixer(x)
        x = self.norm(x)
        weight = torch.softmax(self.score(x), dim=1)
        return self.head((weight * x).sum(1))
