"""Convolutions and attention over the words of an entry."""

import torch
from torch import nn


class Glu(nn.Module):
    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.conv = nn.Conv1d(width, 2 * width, 3, padding=dilation, dilation=dilation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.conv(self.norm(x).transpose(1, 2))
        return x + nn.functional.glu(h, dim=1).transpose(1, 2)


class AreaNet(nn.Module):
    def __init__(self, words: int, areas: int, width: int, depth: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)
        self.blocks = nn.Sequential(*(Glu(width, 2**number) for number in range(depth)))
        self.ask = nn.Linear(width, 1)
        self.head = nn.Linear(width, areas)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.blocks(self.words(tokens))
        weights = self.ask(x).squeeze(2).masked_fill(tokens == 0, -1e9).softmax(1)
        return self.head((weights[:, :, None] * x).sum(1))
