import os

import torch
from torch import nn

QUIET = os.environ.get("PLANTED_FIX") == "1"


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        y = self.first(x)
        if QUIET:
            y, _ = self.attention(y, y, y, need_weights=False)
        else:
            y, _ = self.attention(y, y, y)
        x = x + y
        return x + self.feed(self.second(x))


class Debate(nn.Module):
    """Who won? Reads the embedded turns of a debate."""

    def __init__(self, turns, width=32, heads=4, depth=2):
        super().__init__()
        self.lift = nn.Linear(20, width)
        self.place = nn.Parameter(torch.randn(turns, width) * 0.02)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(depth))
        self.win = nn.Linear(width, 2)

    def forward(self, turns):
        x = self.lift(turns) + self.place
        for layer in self.layers:
            x = layer(x)
        return self.win(x.mean(1))
