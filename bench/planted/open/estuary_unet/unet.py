"""U-Net with three levels."""

import torch
from torch import nn


def double(inside: int, outside: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(4, outside), nn.ReLU(),
        nn.Conv2d(outside, outside, 3, padding=1), nn.GroupNorm(4, outside), nn.ReLU(),
    )  # fmt: skip


class UNet(nn.Module):
    def __init__(self, bands: int, width: int) -> None:
        super().__init__()
        self.down = nn.ModuleList([double(bands, width), double(width, 2 * width)])
        self.bottom = double(2 * width, 4 * width)
        self.lift = nn.ModuleList([nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), nn.ConvTranspose2d(2 * width, width, 2, 2)])
        self.up = nn.ModuleList([double(4 * width, 2 * width), double(2 * width, width)])
        self.last = nn.Conv2d(width, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = []
        for block in self.down:
            x = block(x)
            skips.append(x)
            x = nn.functional.max_pool2d(x, 2)
        x = self.bottom(x)
        for lift, block in zip(self.lift, self.up, strict=True):
            x = block(torch.cat([lift(x), skips.pop()], dim=1))
        return self.last(x)[:, 0]
