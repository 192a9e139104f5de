import torch
from torch import nn


class Marbler(nn.Module):
    def __init__(self, noise, width):
        super().__init__()
        self.noise, self.width = noise, width
        self.drop = nn.Linear(noise, 2 * width * 64)
        self.comb = nn.Sequential(
            nn.LeakyReLU(0.1),
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1),
            nn.LeakyReLU(0.1),
            nn.Conv2d(width, width, 3, padding=1),
            nn.LeakyReLU(0.1),
            nn.ConvTranspose2d(width, 3, 4, 2, 1),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.comb(self.drop(z).unflatten(1, (2 * self.width, 8, 8)))

    def noise_for(self, n):
        return torch.randn(n, self.noise)


class Stationer(nn.Sequential):
    """Says how much a sheet looks like one from the vat."""

    def __init__(self, width):
        super().__init__(
            nn.Conv2d(3, width, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(width, 2 * width, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
            nn.Linear(2 * width * 64, 1),
        )
