"""A light encoder-decoder with dilated convolutions."""

import torch
from torch import nn


class Dilated(nn.Module):
    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.deep = nn.Conv2d(width, width, 3, padding=dilation, dilation=dilation)
        self.point = nn.Conv2d(width, width, 1)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + nn.functional.relu(self.norm(self.point(self.deep(x))))


class CoverNet(nn.Module):
    def __init__(self, bands: int, width: int, covers: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(bands, width, 4, stride=4), nn.ReLU())
        self.body = nn.Sequential(*(Dilated(width, dilation) for dilation in (1, 2, 4)))
        self.head = nn.Sequential(nn.Conv2d(width, covers * 16, 1), nn.PixelShuffle(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.stem(x)))
