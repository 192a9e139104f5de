import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, mask):
        b, t, w = x.shape
        q, k, v = self.qkv(self.one(x)).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, w))
        return x + self.mlp(self.two(x))


class StarModel(nn.Module):
    def __init__(self, conf):
        super().__init__()
        self.words = nn.Embedding(conf.vocabulary, conf.width, padding_idx=0)
        self.places = nn.Embedding(conf.max_length, conf.width)
        self.layers = nn.ModuleList([Layer(conf.width, conf.heads) for _ in range(conf.layers)])
        self.norm = nn.LayerNorm(conf.width)
        self.head = nn.Linear(conf.width, 5)

    def forward(self, ids, mask):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x, mask)
        weight = mask.unsqueeze(-1).float()
        pooled = (self.norm(x) * weight).sum(1) / weight.sum(1)
        return self.head(pooled)
