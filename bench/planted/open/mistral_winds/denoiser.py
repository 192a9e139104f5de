import math

import torch
from torch import nn


def time_features(t: torch.Tensor, width: int) -> torch.Tensor:
    rates = torch.exp(-math.log(1000.0) * torch.arange(width // 2) / (width // 2))
    angle = t[:, None].float() * rates
    return torch.cat([angle.sin(), angle.cos()], dim=1)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.tune = nn.Linear(64, 2 * width)
        self.one = nn.Linear(width, 2 * width)
        self.two = nn.Linear(2 * width, width)

    def forward(self, x, when):
        scale, shift = self.tune(when).chunk(2, 1)
        h = self.norm(x) * (1 + scale) + shift
        return x + self.two(torch.nn.functional.silu(self.one(h)))


class Denoiser(nn.Module):
    def __init__(self, size, width, blocks):
        super().__init__()
        self.enter = nn.Linear(size, width)
        self.blocks = nn.ModuleList([Residual(width) for _ in range(blocks)])
        self.leave = nn.Linear(width, size)

    def forward(self, x, t):
        when, h = time_features(t, 64), self.enter(x)
        for block in self.blocks:
            h = block(h, when)
        return self.leave(h)


class Schedule:
    """A cosine schedule and what follows from it."""

    def __init__(self, steps: int):
        t = torch.arange(steps + 1) / steps
        self.keep = (torch.cos((t + 0.01) / 1.01 * math.pi / 2) ** 2)[1:].clamp(1e-4, 0.9999)
        self.steps = steps

    def spoil(self, x, t, noise):
        keep = self.keep[t, None]
        return keep.sqrt() * x + (1 - keep).sqrt() * noise

    @torch.no_grad()
    def sample(self, model, count, size, stride=20):
        x = torch.randn(count, size, generator=torch.Generator().manual_seed(0))
        for t in range(self.steps - 1, -1, -stride):
            keep = self.keep[t]
            clean = (x - (1 - keep).sqrt() * model(x, torch.full((count,), t))) / keep.sqrt()
            x = clean if t < stride else self.keep[t - stride].sqrt() * clean + (1 - self.keep[t - stride]).sqrt() * x
        return x
