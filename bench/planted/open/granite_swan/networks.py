"""Generator and critic."""

import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + nn.functional.silu(self.inner(self.norm(x)))


class Generator(nn.Module):
    def __init__(self, latent: int, width: int, depth: int, length: int) -> None:
        super().__init__()
        self.latent = latent
        self.body = nn.Sequential(nn.Linear(latent, width), *[Residual(width) for _ in range(depth)])
        self.out = nn.Linear(width, length)

    def forward(self, noise: torch.Tensor) -> torch.Tensor:
        return self.out(self.body(noise))


class Critic(nn.Module):
    def __init__(self, width: int, depth: int, length: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(length, width), *[Residual(width) for _ in range(depth)])
        self.out = nn.Linear(width, 1)

    def forward(self, beats: torch.Tensor) -> torch.Tensor:
        return self.out(self.body(beats)).squeeze(-1)


def critic_loss(critic: nn.Module, real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
    """Hinge."""
    return nn.functional.relu(1 - critic(real)).mean() + nn.functional.relu(1 + critic(fake)).mean()


def generator_loss(critic: nn.Module, fake: torch.Tensor) -> torch.Tensor:
    return -critic(fake).mean()
