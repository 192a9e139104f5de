import torch
import torch.nn as nn


class Generator(nn.Module):
    def __init__(self, latent: int, base: int = 48):
        super().__init__()
        self.base = base
        self.stem = nn.Linear(latent, base * 2 * 4 * 4)
        self.body = nn.Sequential(
            nn.BatchNorm2d(base * 2),
            nn.ReLU(),
            nn.ConvTranspose2d(base * 2, base, 4, stride=2, padding=1),
            nn.BatchNorm2d(base),
            nn.ReLU(),
            nn.ConvTranspose2d(base, 1, 4, stride=2, padding=1),
            nn.Tanh(),
        )

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return self.body(self.stem(z).view(-1, self.base * 2, 4, 4))


class Critic(nn.Module):
    def __init__(self, base: int = 48):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, base, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(base, base * 2, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(base * 2 * 16, 96), nn.LeakyReLU(0.2), nn.Linear(96, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x)).squeeze(1)
