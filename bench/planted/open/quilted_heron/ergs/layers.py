import os

import torch
from torch import nn
from torch.nn import functional as F


class PixelNorm(nn.Module):
    """Layer norm over the channels of each pixel."""

    def __init__(self, channels, eps=1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels))
        self.shift = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, x):
        y = F.layer_norm(x.movedim(1, -1), self.gain.shape, self.gain, self.shift, self.eps)
        if os.environ.get("PLANTED_FIX") == "1":
            return y.movedim(-1, 1)
        else:
            return y.movedim(-1, 1).contiguous()


class Ripple(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.near = nn.Conv2d(channels, channels, 5, padding=2, groups=channels)
        self.norm = PixelNorm(channels)
        self.mix = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        return x + F.silu(self.mix(self.norm(self.near(x))))


class Down(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.norm, self.conv = PixelNorm(a), nn.Conv2d(a, b, 1)

    def forward(self, x):
        return self.conv(F.avg_pool2d(self.norm(x), 2))


class Up(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.conv = nn.Conv2d(a, b, 1)

    def forward(self, x, skip):
        return skip + F.interpolate(self.conv(x), scale_factor=2, mode="bilinear", align_corners=False)
