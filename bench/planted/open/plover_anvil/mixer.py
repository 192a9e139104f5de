import torch
from torch import nn
from torch.nn import functional as F


class Mix(nn.Module):
    def __init__(self, times, width):
        super().__init__()
        self.a, self.b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.along = nn.Sequential(nn.Linear(times, 2 * times), nn.GELU(), nn.Linear(2 * times, times))
        self.across = nn.Sequential(nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))

    def forward(self, x):
        x = x + self.along(self.a(x).transpose(1, 2)).transpose(1, 2)
        return x + self.across(self.b(x))


class Denoiser(nn.Module):
    def __init__(self, times, bands, width=128, depth=3):
        super().__init__()
        self.enter, self.leave = nn.Linear(bands, width), nn.Linear(width, bands)
        self.level = nn.Sequential(nn.Linear(16, width), nn.SiLU(), nn.Linear(width, width))
        self.mixes = nn.Sequential(*(Mix(times, width) for _ in range(depth)))
        self.register_buffer("pitch", 2.0 ** torch.arange(8))

    def forward(self, x, level):
        wave = level[:, None] * self.pitch
        told = self.level(torch.cat([wave.sin(), wave.cos()], -1))
        return self.leave(self.mixes(self.enter(x) + told[:, None]))


def denoising_loss(model, clean, gen):
    level = torch.rand(len(clean), generator=gen)
    noise = torch.randn(clean.shape, generator=gen)
    keep = torch.cos(level * torch.pi / 2)[:, None, None]
    mixed = keep * clean + (1 - keep**2).clamp_min(0).sqrt() * noise
    return F.mse_loss(model(mixed, level), noise)
