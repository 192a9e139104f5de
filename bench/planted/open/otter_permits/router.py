import torch
import torch.nn.functional as F
from torch import nn


class GatedLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, mask):
        value, gate = self.mix(self.norm(x)).chunk(2, -1)
        context = (value * mask).cumsum(1) / mask.cumsum(1).clamp(min=1)
        return x + self.out(torch.sigmoid(gate) * context)


class Router(nn.Module):
    """Routes a permit to an office; takes labels and gives a loss, as Trainer wants it."""

    def __init__(self, vocabulary, width, layers, offices):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width).requires_grad_(False)  # pretrained, stays as it is
        self.layers = nn.ModuleList([GatedLayer(width) for _ in range(layers)])
        self.head = nn.Linear(width, offices)

    def forward(self, codes, mask, labels=None):
        mask = mask.unsqueeze(-1)
        x = self.embed(codes)
        for layer in self.layers:
            x = layer(x, mask)
        logits = self.head((x * mask).sum(1) / mask.sum(1))
        loss = None if labels is None else F.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}
