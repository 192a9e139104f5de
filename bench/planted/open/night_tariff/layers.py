"""The parts of the forecaster."""

import math
import os

import torch
from torch import nn
from torch.nn import functional


class RMS(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.scale


def angles(length: int, size: int, period: float = 336.0) -> tuple[torch.Tensor, torch.Tensor]:
    speed = torch.exp(-math.log(period) * torch.arange(0, size, 2) / size)
    turn = torch.arange(length)[:, None] * speed
    return turn.cos(), turn.sin()


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.cat([even * cos - odd * sin, even * sin + odd * cos], dim=-1)


class Heads:
    """Splits a width into heads and lets each tick look back."""

    heads: int

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(-3, -2)

    def look_back(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        if os.environ.get("PLANTED_FIX") == "1":
            seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = torch.einsum("bhid,bhjd->bhij", query, key) * query.shape[-1] ** -0.5
            later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            weights = scores.masked_fill(later, float("-inf")).softmax(dim=-1)
            seen = torch.einsum("bhij,bhjd->bhid", weights, value)
        return seen.transpose(-3, -2).flatten(-2)


class Remember(Heads, nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.pair = nn.Linear(width, width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, (key, value) = self.split(self.query(x)), map(self.split, self.pair(x).chunk(2, dim=-1))
        cos, sin = angles(x.shape[1], query.shape[-1])
        return self.out(self.look_back(rotate(query, cos, sin), rotate(key, cos, sin), value))


class Gated(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(width, inner), nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(functional.silu(self.gate(x)) * self.up(x))
