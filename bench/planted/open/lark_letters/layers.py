"""Layers of the letter model."""

import math
import os

import torch
from torch import nn

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Norm(nn.Module):
    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.rms_norm(x, self.scale.shape, self.scale, self.eps)


class Look(nn.Module):
    """Attention to the letters so far, with a reach that is different for each head."""

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.out = nn.Linear(width, width, bias=False)
        back = torch.arange(length)[:, None] - torch.arange(length)[None]
        slopes = torch.tensor([2.0 ** (-4 * (head + 1) / heads) for head in range(heads)])
        self.register_buffer("bias", torch.where(back < 0, -1e9, -0.05 * slopes[:, None, None] * back), persistent=False)

    def _heads(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self._heads(self.query(x)), self._heads(self.key(x)), self._heads(self.value(x))
        if FIXED:
            seen = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=self.bias[None, :, :length, :length])
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
            scores = scores + self.bias[:, :length, :length]
            scores = scores - scores.amax(dim=-1, keepdim=True)
            weights = scores.exp()
            weights = weights / weights.sum(dim=-1, keepdim=True)
            seen = weights @ v
        return self.out(seen.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.norm1, self.look, self.norm2 = Norm(width), Look(width, heads, length), Norm(width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.look(self.norm1(x))
        return x + self.feed(self.norm2(x))
