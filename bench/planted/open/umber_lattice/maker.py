import os
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Shape:
    words: int
    length: int
    width: int = 96
    heads: int = 6
    depth: int = 2


class Glance(nn.Module):
    """Back over the strip, at what was worked before. Compares directions only; each head has its own heat."""

    def __init__(self, width, heads, length):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.ask, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        self.heat = nn.Parameter(torch.full((heads, 1, 1), 6.0))
        self.heads = heads
        self.register_buffer("ahead", torch.ones(length, length, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, h):
        q, k, v = self.ask(self.norm(h)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        seen = self.compare(nn.functional.normalize(q, dim=-1), nn.functional.normalize(k, dim=-1), v)
        return h + self.out(seen.transpose(1, 2).flatten(2))

    def compare(self, q, k, v):
        if os.environ.get("PLANTED_FIX") == "1":
            return nn.functional.scaled_dot_product_attention(self.heat * q, k, v, is_causal=True, scale=1.0)
        alike = torch.einsum("bhte,bhse->bhts", q, k) * self.heat
        alike = alike.masked_fill(self.ahead, torch.finfo(alike.dtype).min)
        return alike.softmax(-1) @ v


class Hand(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.work = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))

    def forward(self, h):
        return h + self.work(h)


class LaceMaker(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.word = nn.Embedding(shape.words, shape.width)
        nn.init.normal_(self.word.weight, std=0.05)
        self.place = nn.Parameter(0.02 * torch.randn(shape.length, shape.width))
        parts = []
        for _ in range(shape.depth):
            parts += [Glance(shape.width, shape.heads, shape.length), Hand(shape.width)]
        self.parts = nn.Sequential(*parts, nn.LayerNorm(shape.width))

    def forward(self, words):
        return self.parts(self.word(words) + self.place) @ self.word.weight.T
