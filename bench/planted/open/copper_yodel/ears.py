import math

import torch
import torch.nn.functional as F
from torch import nn


def bank(bands, taps):
    """Fixed wavelets, two phases for each band."""
    at = torch.arange(taps) - taps // 2
    rate = 0.008 * 2 ** (torch.arange(bands) * 5.5 / bands)
    wave = torch.exp(2j * math.pi * rate[:, None] * at) * torch.hann_window(taps, periodic=False)
    return torch.cat([wave.real, wave.imag])[:, None] / taps**0.5


class Ear(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.register_buffer("waves", bank(cfg["bands"], cfg["taps"]))
        self.mix = nn.Sequential(nn.Conv1d(cfg["bands"], cfg["width"] // 4, 3, stride=2), nn.GELU())
        self.out = nn.Sequential(nn.LazyLinear(cfg["width"]), nn.GELU(), nn.Linear(cfg["width"], cfg["code"]))

    def forward(self, sound):
        real, imag = F.conv1d(sound[:, None], self.waves, stride=16).chunk(2, 1)
        loud = torch.log1p(10 * (real.square() + imag.square()))
        return F.normalize(self.out(self.mix(loud).flatten(1)), dim=1)
