"""A sine network for the surface, in double precision."""

import math

import torch
from torch import nn


class Sine(nn.Module):
    def __init__(self, inside: int, outside: int, omega: float, first: bool) -> None:
        super().__init__()
        self.linear, self.omega = nn.Linear(inside, outside), omega
        bound = 1 / inside if first else math.sqrt(6 / inside) / omega
        nn.init.uniform_(self.linear.weight, -bound, bound)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(self.omega * self.linear(x))


class Surface(nn.Module):
    def __init__(self, width: int, depth: int, omega: float = 6.0) -> None:
        super().__init__()
        layers = [Sine(2, width, omega, True)] + [Sine(width, width, omega, False) for _ in range(depth - 1)]
        self.body = nn.Sequential(*layers, nn.Linear(width, 1)).double()

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return self.body(points).squeeze(1)


def roughness(surface: Surface, points: torch.Tensor) -> torch.Tensor:
    """The mean square slope."""
    points = points.detach().requires_grad_()
    slope = torch.autograd.grad(surface(points).sum(), points, create_graph=True)[0]
    return slope.square().sum(1).mean()
