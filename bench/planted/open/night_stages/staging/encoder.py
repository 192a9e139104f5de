import math
import os

import torch
from torch import nn
from torch.nn import functional as F


class EpochMixer(nn.Module):
    """Lets every 30-second epoch of a night look at all the others."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def split(self, x):
        b, t, w = x.shape
        return x.view(b, t, self.heads, w // self.heads).transpose(1, 2)

    def forward(self, x, present):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        if os.environ.get("PLANTED_FIX") == "1":
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=present[:, None, None, :])
        else:
            affinity = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1])
            affinity = affinity.masked_fill(~present[:, None, None, :], -1e9)
            mixed = torch.einsum("bhij,bhjd->bhid", affinity.softmax(dim=-1), v)
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.before = nn.LayerNorm(width)
        self.mixer = EpochMixer(width, heads)
        self.between = nn.LayerNorm(width)
        self.ffn = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

    def forward(self, x, present):
        x = x + self.mixer(self.before(x), present)
        return x + self.ffn(self.between(x))


class SleepStager(nn.Module):
    def __init__(self, channels, width, heads, depth, longest, stages):
        super().__init__()
        self.enter = nn.Linear(channels, width)
        self.clock = nn.Parameter(0.02 * torch.randn(longest, width))
        self.layers = nn.ModuleList([Layer(width, heads) for _ in range(depth)])
        self.head = nn.Linear(width, stages)

    def forward(self, signals, present):
        x = self.enter(signals) + self.clock
        for layer in self.layers:
            x = layer(x, present)
        return self.head(x)
