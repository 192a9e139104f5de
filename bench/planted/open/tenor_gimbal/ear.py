"""The listening network. It came trained on street noise; only its adapters and the head learn to hear bells."""

import torch
from torch import nn


class Adapter(nn.Module):
    def __init__(self, width, rank):
        super().__init__()
        self.down, self.up = nn.Linear(width, rank, bias=False), nn.Linear(rank, width, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, h):
        return h + self.up(self.down(h))


class Block(nn.Module):
    def __init__(self, width, inner, rank):
        super().__init__()
        self.adapter = Adapter(width, rank)
        self.norm = nn.LayerNorm(width)
        self.wide, self.back = nn.Linear(width, 2 * inner), nn.Linear(inner, width)

    def forward(self, h):
        h = self.adapter(h)
        value, gate = self.wide(self.norm(h)).chunk(2, -1)
        return h + self.back(value * torch.sigmoid(gate))


class Stage(nn.Module):
    """A few blocks, then a look at the frames just before."""

    def __init__(self, depth, width, inner, kernel, rank):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, inner, rank) for _ in range(depth))
        self.look = nn.Conv1d(width, width, kernel, groups=width)
        self.kernel = kernel

    def forward(self, h):
        for block in self.blocks:
            h = block(h)
        return h + self.look(nn.functional.pad(h.transpose(1, 2), (self.kernel - 1, 0))).transpose(1, 2)


class Ear(nn.Module):
    def __init__(self, bands, width, inner, stages, depth, rank, kernel, bells):
        super().__init__()
        self.entry = nn.Linear(bands, width)
        self.stages = nn.ModuleList(Stage(depth, width, inner, kernel, rank) for _ in range(stages))
        self.out = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, bells))

    def forward(self, heard):
        h = self.entry(heard)
        for stage in self.stages:
            h = stage(h)
        return self.out(h)
