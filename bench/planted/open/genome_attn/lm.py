"""Autoregressive model of DNA, character level. Model."""

import math
import os

import torch
from torch import nn
from torch.nn import functional as F


class CausalAttention(nn.Module):
    def __init__(self, dim, heads, context):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)
        self.register_buffer("future", torch.ones(context, context, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, d // self.heads).transpose(1, 2) for z in self.to_qkv(x).chunk(3, dim=-1))
        if os.environ.get("PLANTED_FIX") == "1":
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            w = (q @ k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
            w = w.masked_fill(self.future[:t, :t], float("-inf"))
            w = torch.softmax(w, dim=-1)
            y = w @ v
        return self.to_out(y.transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, dim, heads, context):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = CausalAttention(dim, heads, context)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.ff(self.ln2(x))


class DnaLM(nn.Module):
    def __init__(self, dim=96, heads=4, layers=2, context=640):
        super().__init__()
        self.base = nn.Embedding(5, dim)
        self.place = nn.Embedding(context, dim)
        self.layers = nn.ModuleList([Layer(dim, heads, context) for _ in range(layers)])
        self.ln = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 5)

    def forward(self, ids, targets):
        h = self.base(ids) + self.place(torch.arange(ids.shape[1]))
        for layer in self.layers:
            h = layer(h)
        logits = self.head(self.ln(h))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
