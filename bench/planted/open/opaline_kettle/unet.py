import math

import torch
import torch.nn.functional as F
from torch import nn


def timestep_embedding(t, dim):
    freqs = torch.exp(-math.log(10000) * torch.arange(dim // 2) / (dim // 2))
    args = t[:, None].float() * freqs
    return torch.cat([args.cos(), args.sin()], 1)


class ResBlock(nn.Module):
    def __init__(self, cin, cout, tdim):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(8, cin), nn.Conv2d(cin, cout, 3, 1, 1)
        self.n2, self.c2 = nn.GroupNorm(8, cout), nn.Conv2d(cout, cout, 3, 1, 1)
        self.emb = nn.Linear(tdim, cout)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, e):
        h = self.c1(F.silu(self.n1(x))) + self.emb(e)[:, :, None, None]
        return self.c2(F.silu(self.n2(h))) + self.skip(x)


class SelfAttention(nn.Module):
    def __init__(self, ch, heads=4):
        super().__init__()
        self.norm, self.heads = nn.GroupNorm(8, ch), heads
        self.qkv, self.out = nn.Conv2d(ch, 3 * ch, 1), nn.Conv2d(ch, ch, 1)

    def forward(self, x):
        n, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(n, 3, self.heads, c // self.heads, h * w).transpose(3, 4).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(2, 3).reshape(n, c, h, w))


class UNet(nn.Module):
    def __init__(self, width, time_dim, channels=3):
        super().__init__()
        w, self.time_dim = width, time_dim
        self.time = nn.Sequential(nn.Linear(time_dim, time_dim), nn.SiLU(), nn.Linear(time_dim, time_dim), nn.SiLU())
        self.inp = nn.Conv2d(channels, w, 3, 1, 1)
        self.d1 = ResBlock(w, w, time_dim)
        self.down = nn.Conv2d(w, 2 * w, 3, 2, 1)
        self.d2 = ResBlock(2 * w, 2 * w, time_dim)
        self.attn = SelfAttention(2 * w)
        self.mid = ResBlock(2 * w, 2 * w, time_dim)
        self.up = nn.Conv2d(2 * w, w, 3, 1, 1)
        self.u1 = ResBlock(2 * w, w, time_dim)
        self.out = nn.Sequential(nn.GroupNorm(8, w), nn.SiLU(), nn.Conv2d(w, channels, 3, 1, 1))

    def forward(self, x, t):
        e = self.time(timestep_embedding(t, self.time_dim))
        h1 = self.d1(self.inp(x), e)
        h = self.mid(self.attn(self.d2(self.down(h1), e)), e)
        h = self.up(F.interpolate(h, scale_factor=2.0, mode="nearest"))
        return self.out(self.u1(torch.cat([h, h1], 1), e))
