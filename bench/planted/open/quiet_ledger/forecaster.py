"""Days of the past as tokens, a causal transformer, the next day as the answer."""

import torch
from torch import nn

DAY = 24


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.relu(self.up(self.norm2(x))))


class Forecaster(nn.Module):
    def __init__(self, width: int, depth: int, heads: int) -> None:
        super().__init__()
        self.width = width
        self.lift = nn.Linear(DAY, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.answer = nn.Linear(width, DAY)

    def positions(self, days: int) -> torch.Tensor:
        """Sines and cosines of the day's number."""
        rate = torch.exp(-torch.arange(0, self.width, 2) * (6.0 / self.width))
        angle = torch.arange(days)[:, None] * rate
        return torch.cat([angle.sin(), angle.cos()], dim=-1)

    def forward(self, past: torch.Tensor) -> torch.Tensor:
        days = past.unflatten(1, (-1, DAY))
        x = self.lift(days) + self.positions(days.shape[1])
        for block in self.blocks:
            x = block(x)
        return self.answer(self.norm(x))


def targets(past: torch.Tensor, future: torch.Tensor) -> torch.Tensor:
    """For each day, the day after."""
    return torch.cat([past, future], dim=1).unflatten(1, (-1, DAY))[:, 1:]
