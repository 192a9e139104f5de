"""A convolution that looks for motifs, and a small encoder that relates them."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_in, self.norm_out = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide = nn.Sequential(nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.mix(self.norm_in(x)).chunk(3, dim=-1))
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.wide(self.norm_out(x))


class PromoterNet(nn.Module):
    def __init__(self, classes: int, length: int, width: int = 64, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.bases = nn.Embedding(4, 16)
        self.motifs = nn.Conv1d(16, width, 9, padding=4)
        self.places = nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.head = nn.Linear(2 * width, classes)

    def forward(self, bases: torch.Tensor, labels: torch.Tensor | None = None) -> dict:
        x = self.motifs(self.bases(bases).transpose(1, 2)).transpose(1, 2)
        x = self.blocks(torch.relu(x) + self.places)
        logits = self.head(torch.cat([x.mean(dim=1), x.amax(dim=1)], dim=-1))
        if labels is None:
            return {"logits": logits}
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}
