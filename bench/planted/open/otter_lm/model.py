import torch
import torch.nn as nn
import torch.nn.functional as F


class GatedConv(nn.Module):
    """Causal depthwise convolution, a gate, and two small projections."""

    def __init__(self, width: int, reach: int):
        super().__init__()
        self.reach = reach
        self.norm = nn.LayerNorm(width)
        self.deep = nn.Conv1d(width, width, reach, groups=width)
        self.gate = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        h = self.norm(x)
        h = self.deep(F.pad(h.transpose(1, 2), (self.reach - 1, 0))).transpose(1, 2)
        return x + self.out(torch.sigmoid(self.gate(h)) * self.value(h))


class CharModel(nn.Module):
    def __init__(self, vocab: int = 96, width: int = 32, depth: int = 14, reach: int = 4):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(GatedConv(width, reach) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab)

    def forward(self, ids, targets):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())
