import math

import torch
import torch.nn as nn


class TimeEmbedding(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.width = width
        self.net = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, 4 * width))

    def forward(self, t):
        half = self.width // 2
        freq = torch.exp(-math.log(10000) * torch.arange(half) / half)
        angle = t[:, None].float() * freq[None]
        return self.net(torch.cat([angle.sin(), angle.cos()], dim=1))


class ResBlock(nn.Module):
    def __init__(self, inside: int, outside: int, emb: int):
        super().__init__()
        self.conv1 = nn.Sequential(nn.GroupNorm(8, inside), nn.SiLU(), nn.Conv2d(inside, outside, 3, padding=1))
        self.emb = nn.Linear(emb, outside)
        self.conv2 = nn.Sequential(nn.GroupNorm(8, outside), nn.SiLU(), nn.Conv2d(outside, outside, 3, padding=1))
        self.skip = nn.Conv2d(inside, outside, 1) if inside != outside else nn.Identity()

    def forward(self, x, emb):
        h = self.conv1(x) + self.emb(emb)[:, :, None, None]
        return self.conv2(h) + self.skip(x)


class Denoiser(nn.Module):
    def __init__(self, base: int = 32):
        super().__init__()
        emb = 4 * base
        self.time = TimeEmbedding(base)
        self.stem = nn.Conv2d(1, base, 3, padding=1)
        self.down1 = ResBlock(base, base, emb)
        self.pool1 = nn.Conv2d(base, base * 2, 3, stride=2, padding=1)
        self.down2 = ResBlock(base * 2, base * 2, emb)
        self.pool2 = nn.Conv2d(base * 2, base * 4, 3, stride=2, padding=1)
        self.middle = ResBlock(base * 4, base * 4, emb)
        self.up2 = nn.ConvTranspose2d(base * 4, base * 2, 2, stride=2)
        self.dec2 = ResBlock(base * 4, base * 2, emb)
        self.up1 = nn.ConvTranspose2d(base * 2, base, 2, stride=2)
        self.dec1 = ResBlock(base * 2, base, emb)
        self.out = nn.Conv2d(base, 1, 3, padding=1)

    def forward(self, x, t):
        emb = self.time(t)
        a = self.down1(self.stem(x), emb)
        b = self.down2(self.pool1(a), emb)
        m = self.middle(self.pool2(b), emb)
        u = self.dec2(torch.cat([self.up2(m), b], dim=1), emb)
        u = self.dec1(torch.cat([self.up1(u), a], dim=1), emb)
        return self.out(u)
