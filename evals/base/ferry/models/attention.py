"""A small Transformer encoder."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from ferry.models.layers import FeedForward, Positions
from ferry.registry import ENCODERS


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.project = nn.Linear(width, 3 * width)
        self.combine = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        query, key, value = self.project(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        allowed = mask[:, None, None, :]
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=allowed, dropout_p=0.0)
        return self.combine(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads, dropout)
        self.before_feed = nn.LayerNorm(width)
        self.feed = FeedForward(width, hidden, 0.0)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.before_attention(x), mask)
        return x + self.feed(self.before_feed(x))


@ENCODERS.register("attention")
class AttentionEncoder(nn.Module):
    def __init__(self, words: int, width: int, heads: int, layers: int, hidden: int, dropout: float, longest: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.positions = Positions(width, longest)
        self.blocks = nn.ModuleList(Block(width, heads, hidden, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.positions(self.embed(tokens))
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x)
