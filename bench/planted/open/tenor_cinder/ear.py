"""A fixed cochlea (gammatone filters) and a small network behind it."""

import os

import torch
from torch import nn
from torch.nn import functional as F

from passage import WAYS


class Cochlea(nn.Module):
    def __init__(self, filters, taps=257, rate=8000):
        super().__init__()
        t = torch.arange(taps) / rate
        centre = torch.exp(torch.linspace(4.6, 7.9, filters))[:, None]
        width = 24.7 + 0.108 * centre
        tone = t**3 * torch.exp(-2 * torch.pi * 0.6 * width * t) * torch.cos(2 * torch.pi * centre * t)
        self.register_buffer("bank", (tone / tone.norm(dim=1, keepdim=True))[:, None])

    def forward(self, wave):
        h = F.conv1d(wave[:, None], self.bank, padding=128)
        return torch.log1p(F.avg_pool1d(h.abs(), 16, 4, padding=8))


class Ossicle(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv, self.mix = nn.Conv1d(width, width, 5, padding=2, groups=4), nn.Conv1d(width, width, 1)

    def forward(self, h):
        return h + self.mix(F.silu(self.conv(h)))


class Ear(nn.Module):
    def __init__(self, filters, width, blocks, space, memory):
        super().__init__()
        inner = [Ossicle(width) for _ in range(blocks)]
        self.hear = nn.Sequential(Cochlea(filters), nn.Conv1d(filters, width, 3, 2, 1), *inner)
        self.name = nn.Linear(2 * width, space)
        self.way = WAYS["straight" if os.environ.get("PLANTED_FIX") == "1" else memory]

    def forward(self, wave):
        h = self.way(self.hear, wave)
        return F.normalize(self.name(torch.cat([h.mean(-1), h.amax(-1)], -1)), dim=-1)
