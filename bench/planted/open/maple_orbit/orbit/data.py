"""Orbits of a light body around two heavy ones: the state now, and the state some time later."""

import torch
from torch import Tensor


def accelerate(place: Tensor, masses: Tensor) -> Tensor:
    suns = torch.tensor([[-0.5, 0.0], [0.5, 0.0]])
    pull = torch.zeros_like(place)
    for sun, mass in zip(suns, masses.unbind(1), strict=True):
        gap = sun - place
        pull = pull + mass[:, None] * gap / (gap.square().sum(1, keepdim=True) + 0.05) ** 1.5
    return pull


def simulate(bodies: int, seed: int, ticks: int = 60, dt: float = 0.02) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    place = 3 * torch.rand(bodies, 2, generator=g) - 1.5
    speed = 0.6 * torch.randn(bodies, 2, generator=g)
    masses = 0.3 + 0.7 * torch.rand(bodies, 2, generator=g)
    before = torch.cat([place, speed, masses], dim=1)
    for _ in range(ticks):
        speed = speed + dt * accelerate(place, masses)
        place = place + dt * speed
    return before, torch.cat([place, speed], dim=1)
