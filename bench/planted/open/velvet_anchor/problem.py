"""The equation: Allen-Cahn on an interval, with made-up starting curves."""

from dataclasses import dataclass

import torch


@dataclass
class Points:
    inside: torch.Tensor
    start: torch.Tensor
    edge: torch.Tensor


class Sampler:
    """New collocation points for each step."""

    def __init__(self, inside: int, start: int, edge: int, seed: int) -> None:
        self.counts = inside, start, edge
        self.generator = torch.Generator().manual_seed(seed)

    def _uniform(self, count: int) -> torch.Tensor:
        return torch.rand(count, 2, generator=self.generator)

    def draw(self) -> Points:
        inside, start, edge = (self._uniform(count) for count in self.counts)
        start[:, 0] = 0.0
        edge[:, 1] = (edge[:, 1] > 0.5).float()
        for points in (inside, start, edge):
            points[:, 1] = 2 * points[:, 1] - 1
        return Points(inside, start, edge)


def starting_curve(x: torch.Tensor) -> torch.Tensor:
    return x**2 * torch.cos(torch.pi * x)


def allen_cahn(u, u_t, u_xx, diffusion: float = 1e-3, reaction: float = 5.0):
    return u_t - diffusion * u_xx - reaction * (u - u**3)
