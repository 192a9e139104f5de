"""Where the equation, the start and the ends are looked at."""

import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Points:
    """Places (x, t) without units, both from 0 to 1."""

    inside: torch.Tensor
    start: torch.Tensor
    ends: torch.Tensor

    @property
    def heat_at_start(self) -> torch.Tensor:
        x = self.start[:, 0]
        return torch.sin(math.pi * x) + 0.4 * torch.sin(3 * math.pi * x)


def draw(inside: int, edge: int, generator: torch.Generator) -> Points:
    at_start = torch.rand(edge, 2, generator=generator)
    at_start[:, 1] = 0
    at_ends = torch.rand(edge, 2, generator=generator)
    at_ends[:, 0] = at_ends[:, 0].round()
    return Points(torch.rand(inside, 2, generator=generator), at_start, at_ends)


def exact(places: torch.Tensor, fourier: float) -> torch.Tensor:
    """The known answer for this start."""
    x, t = places.unbind(-1)

    def wave(n: int) -> torch.Tensor:
        return torch.sin(n * math.pi * x) * torch.exp(-fourier * (n * math.pi) ** 2 * t)

    return wave(1) + 0.4 * wave(3)
