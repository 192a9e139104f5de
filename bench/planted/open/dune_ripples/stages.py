"""A residual network in stages that fits on small cards."""

import os

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

SPARE_MEMORY = os.environ.get("PLANTED_FIX") != "1"


class Cell(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.GroupNorm(4, width)
        self.inside = nn.Sequential(nn.Conv2d(width, 2 * width, 3, padding=1), nn.GELU(), nn.Conv2d(2 * width, width, 1))

    def forward(self, x):
        return x + self.inside(self.norm(x))


class Stage(nn.Module):
    def __init__(self, width: int, cells: int):
        super().__init__()
        self.cells = nn.ModuleList(Cell(width) for _ in range(cells))

    def forward(self, x):
        for cell in self.cells:
            x = checkpoint(cell, x, use_reentrant=False) if SPARE_MEMORY and self.training else cell(x)
        return x


class Ripples(nn.Module):
    def __init__(self, width: int = 16, stages: int = 3, cells: int = 3):
        super().__init__()
        self.inp = nn.Conv2d(1, width, 3, padding=1)
        self.stages = nn.ModuleList(Stage(width, cells) for _ in range(stages))
        self.out = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x):
        h = self.inp(x)
        for stage in self.stages:
            h = checkpoint(stage, h, use_reentrant=False) if SPARE_MEMORY and self.training else stage(h)
        return x + self.out(h)
