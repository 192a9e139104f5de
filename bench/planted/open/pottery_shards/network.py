"""Separable convolutions with squeeze-and-excite."""

import torch
from torch import nn


class Excite(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Sequential(nn.Linear(width, width // 4), nn.ReLU(), nn.Linear(width // 4, width), nn.Sigmoid())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gate(x.mean(dim=(2, 3)))[:, :, None, None]


def stage(inside: int, outside: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inside, outside, 3, stride=2, padding=1), nn.BatchNorm2d(outside), nn.SiLU(), Excite(outside))


class ShardNet(nn.Module):
    def __init__(self, kinds: int, width: int = 24) -> None:
        super().__init__()
        self.stages = nn.Sequential(stage(3, width), stage(width, 2 * width), stage(2 * width, 4 * width))
        self.head = nn.Sequential(nn.Dropout(0.0), nn.Linear(4 * width, kinds))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.stages(x).mean(dim=(2, 3)))
