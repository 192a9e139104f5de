import torch
from torch import nn


class Frost(nn.Module):
    """Grows a crystal from noise."""

    def __init__(self, seeds=32, width=24):
        super().__init__()
        self.seeds = seeds
        self.root = nn.Linear(seeds, 4 * width * 4 * 4)
        self.grow = nn.Sequential(
            nn.ReLU(),
            nn.ConvTranspose2d(4 * width, 2 * width, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(width, 1, 4, 2, 1),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.grow(self.root(z).view(len(z), -1, 4, 4))


class Glaciologist(nn.Module):
    """Tells grown crystals from fallen ones."""

    def __init__(self, width=24):
        super().__init__()
        sizes = [1, width, 2 * width, 4 * width]
        layers = []
        for a, b in zip(sizes, sizes[1:]):
            layers += [nn.utils.parametrizations.spectral_norm(nn.Conv2d(a, b, 4, 2, 1)), nn.LeakyReLU(0.2)]
        self.body = nn.Sequential(*layers, nn.Flatten(), nn.Linear(4 * width * 16, 1))

    def forward(self, picture):
        return self.body(picture).squeeze(1)


def hinge(real, fake):
    return torch.relu(1 - real).mean() + torch.relu(1 + fake).mean()
