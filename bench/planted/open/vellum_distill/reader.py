import os

import torch
from torch import nn
from torch.nn import functional as F

from pages import COLUMNS, HANDS, PIXELS


class Gaze(nn.Module):
    """Attention among columns; far columns count less (ALiBi)."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        away = (torch.arange(COLUMNS)[:, None] - torch.arange(COLUMNS)).abs()
        slopes = 2.0 ** -torch.arange(1, heads + 1)
        self.register_buffer("distance", -slopes[:, None, None] * away, persistent=False)

    def mix(self, q, k, v):
        if os.environ.get("PLANTED_FIX") == "1":
            return F.scaled_dot_product_attention(q, k, v, attn_mask=self.distance[None])
        seen = []
        for head in range(self.heads):
            score = torch.einsum("btd,bsd->bts", q[:, head], k[:, head]) / q.shape[-1] ** 0.5
            score = score + self.distance[head]
            score = score - score.amax(-1, keepdim=True)
            weight = score.exp()
            weight = weight / weight.sum(-1, keepdim=True)
            seen.append(torch.einsum("bts,bsd->btd", weight, v[:, head]))
        return torch.stack(seen, 1)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        return self.out(self.mix(q, k, v).transpose(1, 2).reshape(b, t, w))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.gaze = Gaze(width, heads)
        self.think = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.gaze(self.norm1(x))
        return x + self.think(self.norm2(x))


class Reader(nn.Module):
    def __init__(self, width, heads, layers):
        super().__init__()
        self.enter = nn.Linear(PIXELS, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.hand = nn.Linear(width, HANDS)

    def forward(self, ink):
        h = self.enter(ink)
        for layer in self.layers:
            h = layer(h)
        return self.hand(h.mean(1))
