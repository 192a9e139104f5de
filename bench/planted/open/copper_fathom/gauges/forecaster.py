"""Diffusion over the basin, gated through time."""

import torch
from torch import Tensor, nn

from .basin import Basin


class Spread(nn.Module):
    def __init__(self, basin: Basin, width: int, out: int) -> None:
        super().__init__()
        self.basin = basin
        self.project = nn.Linear(width * (1 + 2 * basin.order), out)

    def forward(self, x: Tensor) -> Tensor:
        batch, gauges, width = x.shape
        flat = x.permute(1, 0, 2).reshape(gauges, -1)
        moved = (self.basin.supports @ flat).view(-1, gauges, batch, width)
        return self.project(torch.cat([x, *moved.transpose(1, 2)], dim=-1))


class Cell(nn.Module):
    def __init__(self, basin: Basin, features: int, width: int) -> None:
        super().__init__()
        self.gates = Spread(basin, features + width, 2 * width)
        self.fresh = Spread(basin, features + width, width)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        keep, reset = self.gates(torch.cat([x, h], -1)).sigmoid().chunk(2, -1)
        new = self.fresh(torch.cat([x, reset * h], -1)).tanh()
        return keep * h + (1 - keep) * new


class Forecaster(nn.Module):
    def __init__(self, basin: Basin, features: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.cell = Cell(basin, features, width)
        self.level = nn.Linear(width, 1)

    def forward(self, past: Tensor) -> Tensor:
        h = past.new_zeros(past.shape[0], past.shape[2], self.width)
        for x in past.unbind(1):
            h = self.cell(x, h)
        return self.level(h).squeeze(-1)
