"""Reads a diary with attention over its notes."""

import torch
from diaries import PAD
from torch import nn


class Hours(nn.Module):
    """The time since admission as waves of several lengths."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("paces", torch.exp(torch.linspace(0.0, -7.0, width // 2)))

    def forward(self, gaps: torch.Tensor) -> torch.Tensor:
        phase = gaps.cumsum(dim=1)[..., None] * self.paces
        return torch.cat([phase.sin(), phase.cos()], dim=-1)


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.ask, self.answer = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.think = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        q, k, v = self.ask(self.before(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None, None, :])
        x = x + self.answer(mixed.transpose(1, 2).flatten(2))
        return x + self.think(self.between(x))


class Reader(nn.Module):
    def __init__(self, codes: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.codes, self.hours = nn.Embedding(codes, width, padding_idx=PAD), Hours(width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm, self.risk = nn.LayerNorm(width), nn.Linear(width, 1)

    def forward(self, codes: torch.Tensor, gaps: torch.Tensor) -> torch.Tensor:
        seen = codes != PAD
        x = self.codes(codes) + 0.1 * self.hours(gaps)
        for layer in self.layers:
            x = layer(x, seen)
        weight = seen.float()[..., None]
        return self.risk((self.norm(x) * weight).sum(dim=1) / weight.sum(dim=1)).squeeze(-1)
