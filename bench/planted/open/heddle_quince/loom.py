import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import spectral_norm


def weaver(noise, width):
    return nn.Sequential(
        nn.Linear(noise, 2 * width * 16),
        nn.Unflatten(1, (2 * width, 4, 4)),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * width, 2 * width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.ConvTranspose2d(width, 1, 4, 2, 1),
        nn.Tanh(),
    )


class Guildmaster(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.near = spectral_norm(nn.Conv2d(1, width, 4, 2, 1))
        self.mid = spectral_norm(nn.Conv2d(width, 2 * width, 4, 2, 1))
        self.far = spectral_norm(nn.Conv2d(2 * width, 2 * width, 4, 2, 1))
        self.verdict = nn.Linear(2 * width * 16, 1)

    def forward(self, cloth):
        h = cloth
        for layer in (self.near, self.mid, self.far):
            h = F.leaky_relu(layer(h), 0.2)
        return self.verdict(h.flatten(1)).squeeze(1)
