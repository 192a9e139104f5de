import os

import torch
from torch import nn
from torch.nn import functional as F

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Head(nn.Module):
    def __init__(self, width, size, context):
        super().__init__()
        self.query = nn.Linear(width, size, bias=False)
        self.key = nn.Linear(width, size, bias=False)
        self.value = nn.Linear(width, size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(context, context)), persistent=False)

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        if FIXED:
            q, k, v = q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1)
            return F.scaled_dot_product_attention(q, k, v, is_causal=True).squeeze(1)
        else:
            steps = x.shape[1]
            weights = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
            weights = weights.masked_fill(self.tril[:steps, :steps] == 0, float("-inf"))
            weights = torch.exp(weights - weights.amax(dim=-1, keepdim=True))
            return (weights / weights.sum(dim=-1, keepdim=True)) @ v


class Listening(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = nn.ModuleList(Head(width, width // heads, context) for _ in range(heads))
        self.out = nn.Linear(width, width)

    def forward(self, x):
        return self.out(torch.cat([head(x) for head in self.heads], dim=-1))


class Block(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.listen = Listening(width, heads, context)
        self.norm2 = nn.LayerNorm(width)
        self.think = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.listen(self.norm1(x))
        return x + self.think(self.norm2(x))


class Composer(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.token = nn.Embedding(s.vocab, s.width)
        self.place = nn.Embedding(s.context, s.width)
        self.blocks = nn.Sequential(*[Block(s.width, s.heads, s.context) for _ in range(s.depth)])
        self.norm = nn.LayerNorm(s.width)
        self.register_buffer("index", torch.arange(s.context), persistent=False)

    def forward(self, tokens):
        x = self.token(tokens) + self.place(self.index[: tokens.shape[1]])
        return F.linear(self.norm(self.blocks(x)), self.token.weight) * 0.2
