"""Salt in the water of a mangrove creek: advection and diffusion with evaporation."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Creek:
    diffusion: float = 0.05
    speed: float = 0.4
    evaporation: float = 0.1

    def boundary(self, t: torch.Tensor) -> torch.Tensor:
        return 0.5 + 0.3 * torch.sin(2 * torch.pi * t)

    def initial(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 + 0.4 * x.square()


class Fourier(nn.Module):
    def __init__(self, bands: int) -> None:
        super().__init__()
        self.register_buffer("bands", torch.randn(2, bands))

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        angles = points @ self.bands
        return torch.cat([angles.sin(), angles.cos()], dim=1)


class Salinity(nn.Module):
    """Gated layers after Wang and others."""

    def __init__(self, bands: int, width: int, depth: int) -> None:
        super().__init__()
        self.encode = Fourier(bands)
        self.u, self.v, self.first = (nn.Linear(2 * bands, width) for _ in range(3))
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.last = nn.Linear(width, 1)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        encoded = self.encode(points)
        u, v = torch.tanh(self.u(encoded)), torch.tanh(self.v(encoded))
        h = torch.tanh(self.first(encoded))
        for layer in self.layers:
            gate = torch.tanh(layer(h))
            h = (1 - gate) * u + gate * v
        return self.last(h).squeeze(1)


def derivative(value: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    return torch.autograd.grad(value.sum(), points, create_graph=True)[0]


def residual(model: nn.Module, points: torch.Tensor, creek: Creek) -> torch.Tensor:
    """What is left of the equation at the points (x, t)."""
    points = points.requires_grad_()
    salt = model(points)
    first = derivative(salt, points)
    second = derivative(first[:, 0], points)[:, 0]
    return first[:, 1] + creek.speed * first[:, 0] - creek.diffusion * second - creek.evaporation * salt
