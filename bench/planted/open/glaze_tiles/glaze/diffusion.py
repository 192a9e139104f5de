"""The noise schedule, and what is learnt from it."""

import math

import torch
from torch import nn


class Schedule:
    def __init__(self, levels: int) -> None:
        t = torch.arange(levels + 1) / levels
        keep = torch.cos((t + 0.01) / 1.01 * math.pi / 2).square()
        self.levels, self.keep = levels, (keep / keep[0])[1:].clamp_min(1e-4)

    def noised(self, tiles: torch.Tensor, levels: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        keep = self.keep[levels][:, None, None, None]
        return keep.sqrt() * tiles + (1 - keep).sqrt() * noise

    def restored(self, noised: torch.Tensor, levels: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        keep = self.keep[levels][:, None, None, None]
        return (noised - (1 - keep).sqrt() * noise) / keep.sqrt()


class Conditioned(nn.Module):
    def __init__(self, inside: int, outside: int, embedding: int) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(inside, outside, 3, padding=1), nn.Conv2d(outside, outside, 3, padding=1)
        self.norm = nn.GroupNorm(4, outside)
        self.shift = nn.Linear(embedding, 2 * outside)
        self.short = nn.Conv2d(inside, outside, 1)

    def forward(self, x: torch.Tensor, embedding: torch.Tensor) -> torch.Tensor:
        scale, shift = self.shift(embedding)[:, :, None, None].chunk(2, dim=1)
        h = nn.functional.silu(self.norm(self.first(x)) * (1 + scale) + shift)
        return self.short(x) + self.second(h)


class Denoiser(nn.Module):
    def __init__(self, width: int, embedding: int = 64) -> None:
        super().__init__()
        self.register_buffer("waves", torch.exp(torch.linspace(0, -6, embedding // 2)))
        self.level = nn.Sequential(nn.Linear(embedding, embedding), nn.SiLU())
        self.down, self.middle = Conditioned(3, width, embedding), Conditioned(width, 2 * width, embedding)
        self.up, self.last = Conditioned(3 * width, width, embedding), nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x: torch.Tensor, levels: torch.Tensor) -> torch.Tensor:
        angles = levels[:, None] * self.waves
        embedding = self.level(torch.cat([angles.sin(), angles.cos()], dim=1))
        wide = self.down(x, embedding)
        deep = self.middle(nn.functional.avg_pool2d(wide, 2), embedding)
        deep = nn.functional.interpolate(deep, scale_factor=2)
        return self.last(self.up(torch.cat([wide, deep], dim=1), embedding))
