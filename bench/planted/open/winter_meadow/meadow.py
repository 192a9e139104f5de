"""A transformer that fills in hidden patches."""

import torch
from config import Config
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.think = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.queries(self.before(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.think(self.between(x))


class FillIn(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        size = config.channels * config.patch
        self.embed = nn.Linear(size, config.width)
        self.gap = nn.Parameter(0.02 * torch.randn(config.width))
        self.place = nn.Parameter(0.02 * torch.randn(config.length // config.patch, config.width))
        self.blocks = nn.Sequential(*(Block(config.width, config.heads) for _ in range(config.layers)))
        self.norm, self.head = nn.LayerNorm(config.width), nn.Linear(config.width, size)

    def forward(self, patches: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        x = torch.where(hidden.unsqueeze(-1), self.gap, self.embed(patches)) + self.place
        return self.head(self.norm(self.blocks(x)))


def loss_of(filled: torch.Tensor, patches: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    """The error on what was hidden."""
    error = (filled - patches).square().mean(-1)
    return (error * hidden).sum() / hidden.sum().clamp_min(1)
