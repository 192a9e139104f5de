"""How positions look at each other. Both strands matter, so nothing is causal."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def rotate(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, -1)
    c, s = angles.cos(), angles.sin()
    return torch.cat([a * c - b * s, a * s + b * c], -1)


class Mixing(nn.Module):
    def __init__(self, width: int, heads: int, window: int, style: str):
        super().__init__()
        self.heads, self.size, self.style = heads, width // heads, style
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        rates = 10000 ** (-torch.arange(self.size // 2) / (self.size // 2))
        self.register_buffer("angles", torch.arange(window)[:, None] * rates, persistent=False)

    def weights(self, q, k):
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.size)
        scores = scores - scores.amax(dim=-1, keepdim=True)
        scores = scores.exp()
        return scores / scores.sum(dim=-1, keepdim=True)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, self.size).permute(2, 0, 3, 1, 4)
        q, k = rotate(q, self.angles[:t]), rotate(k, self.angles[:t])
        if self.style == "library":
            mixed = F.scaled_dot_product_attention(q, k, v)
        else:
            mixed = torch.matmul(self.weights(q, k), v)
        return self.out(mixed.transpose(1, 2).reshape(b, t, w))
