"""The maker of seas and its critic."""

import torch
from torch import nn


def tower(sizes: list[int], end: nn.Module) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in zip(sizes, sizes[1:]):
        layers += [nn.Linear(before, after), nn.LeakyReLU(0.2, inplace=True)]
    return nn.Sequential(*layers[:-1], end)


class Pair(nn.Module):
    def __init__(self, latent: int, hidden: int, cells: int) -> None:
        super().__init__()
        self.maker = tower([latent, hidden, hidden, cells], nn.Tanh())
        self.critic = tower([cells, hidden, hidden, 1], nn.Identity())


def critic_loss(pair: Pair, real: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        made = pair.maker(noise)
    return nn.functional.relu(1 - pair.critic(real)).mean() + nn.functional.relu(1 + pair.critic(made)).mean()


def maker_loss(pair: Pair, noise: torch.Tensor) -> torch.Tensor:
    return -pair.critic(pair.maker(noise)).mean()
