import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Classifier(nn.Module):
    """Several looks at the features, mixed by residual blocks."""

    def __init__(self, inputs, width, blocks, looks=8):
        super().__init__()
        self.looks = looks
        self.stem = nn.Linear(inputs, looks * width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(blocks)])
        self.head = nn.Linear(width, 8)

    def forward(self, x):
        x = self.stem(x).reshape(len(x), self.looks, -1)
        return self.head(self.blocks(x).mean(1))
