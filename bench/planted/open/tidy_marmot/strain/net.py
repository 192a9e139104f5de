"""Dilated convolutions that say for each sample whether the fault slips."""

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.wide = nn.Conv1d(width, width, 5, padding=2 * dilation, dilation=dilation)
        self.norm, self.mix = nn.GroupNorm(4, width), nn.Conv1d(width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.mix(torch.relu(self.norm(self.wide(x))))


class SlipNet(nn.Sequential):
    def __init__(self, gauges: int, width: int, depth: int) -> None:
        layers = [Layer(width, 2**level) for level in range(depth)]
        super().__init__(nn.Conv1d(gauges, width, 7, padding=3), *layers, nn.Conv1d(width, 2, 1))
