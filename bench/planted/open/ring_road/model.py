"""Forecasts from signals that are spread over the roads at several reaches."""

import torch
from roads import Roads
from spread import heat
from torch import nn


class RoadLayer(nn.Module):
    """What the subclasses share: the network and the reaches."""

    def __init__(self, roads: Roads, times: tuple[float, ...]) -> None:
        super().__init__()
        self.roads, self.times = roads, times

    def reach(self, x: torch.Tensor) -> torch.Tensor:
        """Batch, sensors, width -> batch, sensors, reaches * width."""
        kernels = heat(self.roads, self.times)
        return torch.einsum("kij,bjw->bikw", kernels, x).flatten(2)


class Spread(RoadLayer):
    def __init__(self, roads: Roads, times: tuple[float, ...], width: int) -> None:
        super().__init__(roads, times)
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(len(times) * width, 2 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.out(nn.functional.glu(self.mix(self.reach(self.norm(x)))))


class Forecaster(nn.Module):
    def __init__(self, roads: Roads, past: int, ahead: int, width: int, layers: int, times: list[float]) -> None:
        super().__init__()
        self.read = nn.Linear(past, width)
        self.layers = nn.Sequential(*(Spread(roads, tuple(times), width) for _ in range(layers)))
        self.tell = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, ahead))

    def forward(self, readings: torch.Tensor) -> torch.Tensor:
        return readings[..., -1:] + self.tell(self.layers(self.read(readings)))
