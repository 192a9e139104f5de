import math

import torch
from torch import nn


class GroupAttention(nn.Module):
    """A tiny attention over the few column groups of a hide."""

    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, groups):
        q, k, v = self.qkv(groups).chunk(3, dim=-1)
        scores = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return groups + scores @ v


class Grader(nn.Module):
    def __init__(self, columns, groups, width):
        super().__init__()
        self.groups = groups
        self.attention = GroupAttention(columns // groups)
        self.widen = nn.Linear(columns, width)
        self.blocks = nn.ModuleList([nn.Linear(width, width) for _ in range(4)])
        self.price = nn.Linear(width, 1)

    def forward(self, columns):
        grouped = columns.unflatten(1, (self.groups, -1))
        x = self.widen(self.attention(grouped).flatten(1)).relu()
        for block in self.blocks:
            x = x + block(x).relu()
        return self.price(x).squeeze(1)
