import math

import torch
from torch import nn
from torch.nn import functional as F

from sparing import spare


def when(t, width):
    rate = torch.exp(-math.log(1000.0) * torch.arange(width // 2) / (width // 2))
    angle = t[:, None] * rate
    return torch.cat([angle.sin(), angle.cos()], 1)


class Res(nn.Module):
    def __init__(self, a, b, time):
        super().__init__()
        self.one, self.two = nn.Conv1d(a, b, 5, padding=2), nn.Conv1d(b, b, 5, padding=2)
        self.norm1, self.norm2 = nn.GroupNorm(1 if a < 8 else 8, a), nn.GroupNorm(8, b)
        self.shift = nn.Linear(time, b)
        self.skip = nn.Identity() if a == b else nn.Conv1d(a, b, 1)

    @spare
    def forward(self, x, t):
        h = self.one(F.silu(self.norm1(x))) + self.shift(t)[:, :, None]
        return self.skip(x) + self.two(F.silu(self.norm2(h)))


class Stage(nn.Module):
    def __init__(self, a, b, time, depth=2):
        super().__init__()
        self.blocks = nn.ModuleList(Res(a if i == 0 else b, b, time) for i in range(depth))

    @spare
    def forward(self, x, t):
        for block in self.blocks:
            x = block(x, t)
        return x


class UNet(nn.Module):
    def __init__(self, width=32, time=64):
        super().__init__()
        self.time = time
        self.clock = nn.Sequential(nn.Linear(time, time), nn.SiLU(), nn.Linear(time, time))
        self.enter = nn.Conv1d(2, width, 3, padding=1)
        self.down1, self.down2 = Stage(width, width, time), Stage(width, 2 * width, time)
        self.middle = Stage(2 * width, 2 * width, time, 1)
        self.up2, self.up1 = Stage(4 * width, width, time), Stage(2 * width, width, time)
        self.leave = nn.Conv1d(width, 2, 3, padding=1)

    @spare
    def body(self, x, t):
        a = self.down1(x, t)
        b = self.down2(F.avg_pool1d(a, 2), t)
        m = self.middle(F.avg_pool1d(b, 2), t)
        u = self.up2(torch.cat([F.interpolate(m, scale_factor=2.0), b], 1), t)
        return self.up1(torch.cat([F.interpolate(u, scale_factor=2.0), a], 1), t)

    def forward(self, x, t):
        return self.leave(self.body(self.enter(x), self.clock(when(t, self.time))))
