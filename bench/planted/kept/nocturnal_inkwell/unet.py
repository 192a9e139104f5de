import math

import torch
from torch import nn
from torch.nn import functional as F


def timestep_embedding(t, dim):
    freqs = torch.exp(-math.log(10_000) * torch.arange(dim // 2) / (dim // 2))
    angles = t[:, None].float() * freqs[None]
    return torch.cat([angles.cos(), angles.sin()], dim=1)


class ResBlock(nn.Module):
    def __init__(self, cin, cout, emb):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, cin), nn.GroupNorm(4, cout)
        self.conv1 = nn.Conv2d(cin, cout, 3, padding=1)
        self.conv2 = nn.Conv2d(cout, cout, 3, padding=1)
        self.emb = nn.Linear(emb, cout)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, emb):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.emb(F.silu(emb))[:, :, None, None]
        return self.conv2(F.silu(self.norm2(h))) + self.skip(x)


class UNet(nn.Module):
    def __init__(self, width=24, n_classes=4, emb=64):
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.label = nn.Embedding(n_classes + 1, emb)
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.down1 = ResBlock(width, width, emb)
        self.down2 = ResBlock(width, 2 * width, emb)
        self.mid = ResBlock(2 * width, 2 * width, emb)
        self.up2 = ResBlock(4 * width, 2 * width, emb)
        self.up1 = ResBlock(3 * width, width, emb)
        self.out = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x, t, y):
        emb = self.time(timestep_embedding(t, self.width)) + self.label(y)
        a = self.down1(self.stem(x), emb)
        b = self.down2(F.avg_pool2d(a, 2), emb)
        c = self.mid(F.avg_pool2d(b, 2), emb)
        u = self.up2(torch.cat([b, F.interpolate(c, scale_factor=2)], 1), emb)
        u = self.up1(torch.cat([a, F.interpolate(u, scale_factor=2)], 1), emb)
        return self.out(F.silu(u))
