import torch
from torch import nn
from torch.nn import functional as F

from pricking import STITCHES


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = self.qkv(self.first(x)).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(n, t, width))
        return x + self.mlp(self.second(x))


class Maker(nn.Module):
    def __init__(self, width, depth, heads, pins):
        super().__init__()
        self.stitch, self.place = nn.Embedding(STITCHES, width), nn.Parameter(torch.zeros(pins, width))
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, STITCHES)

    def forward(self, rows):
        return self.head(self.norm(self.blocks(self.stitch(rows) + self.place[: rows.shape[1]])))
