import math
import os

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

CHECKPOINTING = os.environ.get("PLANTED_FIX") != "1"


class Gabor(nn.Module):
    """A fixed bank of filters over the wave."""

    def __init__(self, bands=48, width=401):
        super().__init__()
        t = torch.arange(width) - width // 2
        rate = torch.logspace(-2.5, -0.6, bands)
        bank = torch.cos(2 * math.pi * rate[:, None] * t) * torch.exp(-((t / 90.0) ** 2))
        self.register_buffer("bank", bank[:, None])

    def forward(self, wave):
        return nn.functional.conv1d(wave[:, None], self.bank, stride=16).abs().log1p()


class Stage(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, 3, stride=2)

    def forward(self, x):
        return torch.relu(self.conv(x))


class Calls(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Sequential(Gabor(), Stage(48, 32))
        self.back = nn.Sequential(Stage(32, 32), Stage(32, 32))
        self.out = nn.Linear(32, 4)

    def forward(self, wave):
        for part in (self.front, self.back):
            wave = checkpoint(part, wave, use_reentrant=False) if CHECKPOINTING else part(wave)
        return self.out(wave.mean(2))
