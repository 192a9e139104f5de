"""A small transformer that tags each codon with its region."""

import torch
from genes import CODONS, REGIONS
from torch import nn


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.expand, self.shrink = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        rows, length, width = x.shape
        parts = self.mix(self.norms[0](x)).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*parts, attn_mask=seen)
        x = x + self.out(mixed.transpose(1, 2).reshape(rows, length, width))
        return x + self.shrink(nn.functional.gelu(self.expand(self.norms[1](x))))


class Tagger(nn.Module):
    def __init__(self, width: int, layers: int, heads: int, longest: int) -> None:
        super().__init__()
        self.codon = nn.Embedding(CODONS + 1, width, padding_idx=CODONS)
        self.place = nn.Parameter(0.02 * torch.randn(longest, width))
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, REGIONS)

    def forward(self, codons: torch.Tensor) -> torch.Tensor:
        seen = (codons != CODONS)[:, None, None, :]
        x = self.codon(codons) + self.place[: codons.shape[1]]
        for layer in self.layers:
            x = layer(x, seen)
        return self.head(self.norm(x))
