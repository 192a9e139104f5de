"""A small residual network on spectrograms."""

import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inside, outside, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(outside),
            nn.GELU(),
            nn.Conv2d(outside, outside, 3, padding=1, bias=False),
            nn.BatchNorm2d(outside),
        )
        self.short = nn.Conv2d(inside, outside, 1, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.gelu(self.body(x) + self.short(x))


class SongNet(nn.Module):
    def __init__(self, classes: int, width: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, width // 2, 5, stride=2, padding=2)
        self.stages = nn.Sequential(Residual(width // 2, width), Residual(width, width * 2), Residual(width * 2, width * 2))
        self.head = nn.Linear(width * 2, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.stages(self.stem(x)).mean(dim=(2, 3)))
