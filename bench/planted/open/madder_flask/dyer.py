"""A mixture of Gaussians over colours, its middle given by a deep network of gated layers."""

import math

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(width, width)

    def forward(self, x):
        value, gate = self.up(self.norm(x)).chunk(2, -1)
        return x + self.down(value * torch.sigmoid(gate))


class Dyer(nn.Module):
    def __init__(self, herbs, width=320, depth=4, parts=6):
        super().__init__()
        self.parts = parts
        self.body = nn.Sequential(nn.Linear(herbs, width), *[Gate(width) for _ in range(depth)], nn.LayerNorm(width))
        self.head = nn.Linear(width, parts * 7)

    def forward(self, recipe):
        weight, middle, spread = self.head(self.body(recipe)).unflatten(-1, (self.parts, 7)).split([1, 3, 3], -1)
        return weight.squeeze(-1).log_softmax(-1), middle, spread.clamp(-4, 3)

    def surprise(self, recipe, colour):
        weight, middle, spread = self(recipe)
        z = (colour[:, None] - middle) * torch.exp(-spread)
        each = -0.5 * z.square().sum(-1) - spread.sum(-1) - 1.5 * math.log(2 * math.pi)
        return -torch.logsumexp(weight + each, -1).mean()
