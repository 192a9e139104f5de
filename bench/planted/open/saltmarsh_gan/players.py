import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self, latent, width, size):
        super().__init__()
        self.size = size
        self.net = nn.Sequential(
            nn.Linear(latent, 3 * width),
            nn.LeakyReLU(0.2),
            nn.Linear(3 * width, 4 * width),
            nn.LayerNorm(4 * width),
            nn.LeakyReLU(0.2),
            nn.Linear(4 * width, 4 * width),
            nn.LeakyReLU(0.2),
            nn.Linear(4 * width, size * size),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.net(z).view(-1, 1, self.size, self.size)


class Critic(nn.Module):
    def __init__(self, width, size):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width // 4, 3, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(width // 4, width // 2, 3, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
        )
        flat = (width // 2) * (size // 4) ** 2
        self.head = nn.Sequential(nn.Linear(flat, 2 * width), nn.LeakyReLU(0.2), nn.Linear(2 * width, 1))

    def forward(self, x):
        return self.head(self.features(x)).squeeze(-1)


@torch.no_grad()
def follow(average: nn.Module, model: nn.Module, keep: float):
    torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 1 - keep)
