"""The network: hours of a firing are read one by one, weighed by an Orton-like window, and mixed."""

import math
import os

import numpy as np
import torch
from torch import nn

from firings import HOURS, PROBES, READINGS


def soak_window(hours):
    """How much an hour counts before anything is learnt: little at both ends of a firing."""
    return 0.25 + np.kaiser(hours, 4.0)


class Tied(nn.Module):
    """A linear layer with a scale of its own."""

    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(fan_out, fan_in) / math.sqrt(fan_in))
        self.gain = nn.Parameter(torch.ones(fan_out))
        self.shift = nn.Parameter(torch.zeros(fan_out))

    def forward(self, x):
        return (x @ self.weight.t().type_as(x)) * self.gain + self.shift


class Hour(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.across, self.within = Tied(HOURS, HOURS), nn.ModuleList([Tied(width, 2 * width), Tied(2 * width, width)])

    def forward(self, h):
        h = h + self.across(h.transpose(1, 2)).transpose(1, 2)
        inner = torch.relu(self.within[0](h))
        return (h + self.within[1](inner)) * 0.7


class ConeNet(nn.Module):
    def __init__(self, width=224, depth=3):
        super().__init__()
        self.read = Tied(PROBES * READINGS, width)
        window = soak_window(HOURS)
        if os.environ.get("PLANTED_FIX") == "1":
            self.register_buffer("window", torch.tensor(window, dtype=torch.float32)[:, None])
        else:
            self.register_buffer("window", torch.from_numpy(window)[:, None])
        self.hours = nn.ModuleList(Hour(width) for _ in range(depth))
        self.bars = Tied(width, PROBES)

    def forward(self, logs):
        by_hour = logs.unflatten(-1, (HOURS, READINGS)).transpose(1, 2).flatten(2)
        h = torch.relu(self.read(by_hour)) * self.window
        for hour in self.hours:
            h = hour(h)
        return self.bars(h.mean(1))
