"""A neural additive model: one small network for each gauge, so that each curve can be shown to the owner."""

import torch
from torch import nn


def curve(hidden: int, layers: int) -> nn.Sequential:
    parts: list[nn.Module] = [nn.Linear(1, hidden), nn.ReLU()]
    for _ in range(layers - 2):
        parts += [nn.Linear(hidden, hidden), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(hidden, 1))


class Additive(nn.Module):
    def __init__(self, gauges: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.curves = nn.ModuleList([curve(hidden, layers) for _ in range(gauges)])
        self.base = nn.Parameter(torch.zeros(1))

    def forward(self, readings: torch.Tensor) -> torch.Tensor:
        shares = [curve(column) for curve, column in zip(self.curves, readings.split(1, dim=1))]
        return torch.cat(shares, dim=1).sum(dim=1) + self.base
