import math
import os

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Causal attention over the hours, several heads."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, hours, width = x.shape
        q, k, v = self.qkv(x).view(batch, hours, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        return self.out(self.look(q, k, v).transpose(1, 2).reshape(batch, hours, width))

    def look(self, q, k, v):
        if os.environ.get("PLANTED_FIX") == "1":
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        hours = q.shape[-2]
        score = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
        future = torch.ones(hours, hours, dtype=torch.bool).triu(1)
        score = score.masked_fill(future, float("-inf"))
        share = torch.softmax(score, dim=-1)
        return torch.einsum("bhqk,bhkd->bhqd", share, v)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.wide = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.wide(self.second(x))


class Encoder(nn.Module):
    def __init__(self, width, depth, heads):
        super().__init__()
        self.layers = nn.ModuleList([Layer(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)
