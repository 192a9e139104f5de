"""A small dilated picker with gated residual blocks."""

import torch
from torch import nn


class GatedBlock(nn.Module):
    def __init__(self, channels: int, dilation: int):
        super().__init__()
        self.norm = nn.GroupNorm(4, channels)
        self.conv = nn.Conv1d(channels, 2 * channels, 5, padding=2 * dilation, dilation=dilation)
        self.out = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        a, b = self.conv(self.norm(x)).chunk(2, dim=1)
        return x + self.out(torch.tanh(a) * torch.sigmoid(b))


class Picker(nn.Module):
    def __init__(self, channels: int, depth: int):
        super().__init__()
        self.stem = nn.Conv1d(6, channels, 7, stride=2, padding=3)
        self.blocks = nn.Sequential(*[GatedBlock(channels, 2**i) for i in range(depth)])
        self.head = nn.ConvTranspose1d(channels, 2, 4, stride=2, padding=1)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


def onset_error(logits: torch.Tensor, curves: torch.Tensor) -> torch.Tensor:
    return (logits.argmax(-1) - curves.argmax(-1)).abs().float().mean()
