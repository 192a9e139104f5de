import torch
import torch.nn.functional as F
from torch import nn

from genome import VOCAB


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.relu(self.up(self.norm2(x))))


class GenomeLM(nn.Module):
    def __init__(self, length, dim=256, layers=3, heads=4):
        super().__init__()
        self.token = nn.Embedding(VOCAB, dim)
        self.position = nn.Parameter(0.02 * torch.randn(length, dim))
        self.local = nn.Conv1d(dim, dim, 6, groups=8)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, VOCAB)

    def forward(self, tokens):
        x = self.token(tokens)
        x = x + self.local(F.pad(x.transpose(1, 2), (5, 0))).transpose(1, 2) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
