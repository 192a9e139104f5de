import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self, latent: int = 32, width: int = 32):
        super().__init__()
        self.start = nn.Linear(latent, 2 * width * 16)
        self.net = nn.Sequential(
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.ConvTranspose2d(width, 1, 4, 2, 1),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.net(self.start(z).view(len(z), -1, 4, 4))


class Critic(nn.Module):
    def __init__(self, width: int = 32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, width, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(width, 2 * width, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
            nn.Linear(32 * width, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1)
