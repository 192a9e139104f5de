"""A dilated convolutional network over one-hot bases."""

import torch
from settings import ModelSettings
from torch import nn


class DilatedBlock(nn.Module):
    def __init__(self, width: int, kernel: int, dilation: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(width, width, kernel, padding=dilation * (kernel // 2), dilation=dilation)
        self.mix = nn.Conv1d(width, width, 1)
        self.norm = nn.GroupNorm(4, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.mix(nn.functional.gelu(self.norm(self.conv(x))))


class PromoterNet(nn.Module):
    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.stem = nn.Conv1d(4, settings.width, settings.kernel, padding=settings.kernel // 2)
        self.blocks = nn.Sequential(*(DilatedBlock(settings.width, settings.kernel, 2**i) for i in range(settings.blocks)))
        self.head = nn.Linear(2 * settings.width, 1)

    def forward(self, bases: torch.Tensor) -> torch.Tensor:
        x = nn.functional.one_hot(bases.long(), 4).transpose(1, 2).float()
        x = self.blocks(self.stem(x))
        return self.head(torch.cat([x.amax(-1), x.mean(-1)], dim=-1)).squeeze(-1)
