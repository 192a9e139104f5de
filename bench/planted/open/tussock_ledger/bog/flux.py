"""Gated residual network with a Gaussian at its end."""

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.lift = nn.Linear(width, 2 * width)
        self.down = nn.Linear(width, width)

    def forward(self, x):
        value, gate = self.lift(self.norm(x)).chunk(2, -1)
        return x + self.down(value * torch.sigmoid(gate))


class FluxNet(nn.Module):
    def __init__(self, channels, width, blocks):
        super().__init__()
        self.enter = nn.Linear(channels, width)
        self.blocks = nn.Sequential(*[Gate(width) for _ in range(blocks)])
        self.leave = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2))

    def forward(self, drivers):
        mean, log_var = self.leave(self.blocks(self.enter(drivers))).chunk(2, -1)
        return mean, log_var.clamp(-4, 3)


def surprise(answer, flux):
    mean, log_var = answer
    return 0.5 * (log_var + (flux - mean).square() * torch.exp(-log_var)).mean()


def like(network, sample):
    """Puts a network where the data are."""
    return network.to(sample)
