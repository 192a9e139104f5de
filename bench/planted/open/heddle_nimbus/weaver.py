import os

import torch
from torch import nn


class Crossing(nn.Module):
    """Each pick looks at all others of the piece."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x):
        h = self.norm(x)
        if os.environ.get("PLANTED_FIX") == "1":
            seen, _ = self.mix(h, h, h, need_weights=False)
        else:
            seen, _ = self.mix(h, h, h)
        return x + seen


class Beat(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))

    def forward(self, x):
        return x + self.inner(x)


class Weaver(nn.Module):
    def __init__(self, shafts, picks, width, heads, blocks):
        super().__init__()
        self.pick = nn.Embedding(shafts + 1, width)
        self.place = nn.Parameter(0.02 * torch.randn(picks, width))
        self.shed = nn.Sequential(*(part for _ in range(blocks) for part in (Crossing(width, heads), Beat(width))))
        self.tie_up = nn.Linear(width, shafts)

    def forward(self, cloth):
        return self.tie_up(self.shed(self.pick(cloth) + self.place))
