import math

import torch
from torch import nn


def embed(t, width):
    rates = torch.exp(-math.log(1000.0) * torch.arange(width // 2) / (width // 2))
    angles = t[:, None].float() * rates[None]
    return torch.cat([angles.sin(), angles.cos()], 1)


class Block(nn.Module):
    def __init__(self, inside, outside, condition):
        super().__init__()
        self.norm = nn.GroupNorm(4, inside)
        self.first = nn.Conv2d(inside, outside, 3, padding=1)
        self.shift = nn.Linear(condition, outside)
        self.second = nn.Conv2d(outside, outside, 3, padding=1)
        self.drop = nn.Dropout(0.05)
        self.skip = nn.Conv2d(inside, outside, 1) if inside != outside else nn.Identity()

    def forward(self, x, condition):
        h = self.first(nn.functional.silu(self.norm(x))) + self.shift(condition)[:, :, None, None]
        return self.skip(x) + self.second(self.drop(nn.functional.silu(h)))


class Net(nn.Module):
    """A small U-Net; class `classes` stands for no class."""

    def __init__(self, classes, width=16, condition=32):
        super().__init__()
        self.width = width
        self.label = nn.Embedding(classes + 1, condition)
        self.time = nn.Sequential(nn.Linear(width, condition), nn.SiLU(), nn.Linear(condition, condition))
        self.enter = nn.Conv2d(1, width, 3, padding=1)
        self.down = Block(width, 2 * width, condition)
        self.middle = Block(2 * width, 2 * width, condition)
        self.up = Block(3 * width, width, condition)
        self.leave = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x, t, label):
        condition = self.time(embed(t, self.width)) + self.label(label)
        first = self.enter(x)
        low = self.middle(self.down(nn.functional.avg_pool2d(first, 2), condition), condition)
        high = nn.functional.interpolate(low, scale_factor=2, mode="nearest")
        return self.leave(self.up(torch.cat([high, first], 1), condition))
