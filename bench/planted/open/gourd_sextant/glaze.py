import torch
from torch import nn


def tower(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


class GlazeVAE(nn.Module):
    """Gives the loss itself. The prior's pull grows with the epochs: without it the code collapses."""

    def __init__(self, bands, hidden, latent, decay):
        super().__init__()
        self.encode = tower(bands, hidden, hidden, 2 * latent)
        self.decode = tower(latent, hidden, hidden, bands)
        self.decay, self.epoch = decay, 0

    def pull(self):
        return 1 - self.decay**self.epoch

    def forward(self, spectra, noise):
        mean, spread = self.encode(spectra).chunk(2, -1)
        code = mean + noise * torch.exp(0.5 * spread)
        miss = (self.decode(code) - spectra).square().sum(-1).mean()
        prior = 0.5 * (mean.square() + spread.exp() - spread - 1).sum(-1).mean()
        return miss + self.pull() * prior
