"""A graph network with initial residuals (GCNII)."""

import math

import torch
from torch import nn


class Spread(nn.Module):
    def __init__(self, width: int, keep: float, strength: float) -> None:
        super().__init__()
        self.weight = nn.Linear(width, width, bias=False)
        self.keep, self.strength = keep, strength

    def forward(self, x: torch.Tensor, start: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
        mixed = (1 - self.keep) * torch.sparse.mm(adjacency, x) + self.keep * start
        return torch.relu((1 - self.strength) * mixed + self.strength * self.weight(mixed))


class WorkshopNet(nn.Module):
    def __init__(self, features: int, width: int, depth: int, workshops: int, dropout: float) -> None:
        super().__init__()
        self.enter = nn.Linear(features, width)
        self.layers = nn.ModuleList(Spread(width, 0.1, math.log(0.5 / (n + 1) + 1)) for n in range(depth))
        self.leave = nn.Linear(width, workshops)
        self.dropout = dropout

    def forward(self, x: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
        start = x = torch.relu(self.enter(nn.functional.dropout(x, self.dropout, self.training)))
        for layer in self.layers:
            x = layer(nn.functional.dropout(x, self.dropout, self.training), start, adjacency)
        return self.leave(x)
