"""The denoiser and its critic."""

import torch
import torch.nn as nn

from signals import LENGTH


class Denoiser(nn.Module):
    def __init__(self, width=96, code=32):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(LENGTH, width), nn.GELU(), nn.Linear(width, code))
        self.decoder = nn.Sequential(nn.GELU(), nn.Linear(code, width), nn.GELU(), nn.Linear(width, LENGTH))

    def forward(self, x):
        return x + self.decoder(self.encoder(x))


class Critic(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2 * LENGTH, width), nn.LeakyReLU(0.2), nn.Linear(width, 1))

    def forward(self, noisy, signal):
        return self.layers(torch.cat([noisy, signal], dim=1)).squeeze(1)
