"""A residual MLP for tabular data."""

import torch.nn as nn


class ResidualBlock(nn.Module):
    def __init__(self, width: int, dropout: float):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 2 * width)
        self.shrink = nn.Linear(2 * width, width)
        self.act = nn.GELU()
        self.dropout = nn.Dropout(dropout)
        self.gate = nn.Linear(width, width)

    def forward(self, x):
        hidden = self.norm(x)
        update = self.shrink(self.dropout(self.act(self.expand(hidden))))
        return x + self.gate(hidden).sigmoid() * update


class TabularNet(nn.Module):
    def __init__(self, features: int, classes: int, width: int = 96, blocks: int = 8, dropout: float = 0.1):
        super().__init__()
        self.stem = nn.Linear(features, width)
        self.blocks = nn.ModuleList(ResidualBlock(width, dropout) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
