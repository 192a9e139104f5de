"""The solution as a function of parameters and one point."""

import torch
from torch import nn
from torch.func import functional_call


class Features(nn.Module):
    """Time and some waves in space, so that the edges agree."""

    def __init__(self, waves: int) -> None:
        super().__init__()
        self.register_buffer("numbers", torch.pi * torch.arange(1, waves + 1))

    def forward(self, point: torch.Tensor) -> torch.Tensor:
        angle = point[..., 1:] * self.numbers
        return torch.cat([point[..., :1], torch.sin(angle), torch.cos(angle)], dim=-1)


class Solution(nn.Module):
    def __init__(self, waves: int, width: int, depth: int) -> None:
        super().__init__()
        self.features = Features(waves)
        sizes = [2 * waves + 1, *[width] * depth]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False))
        self.out = nn.Linear(width, 1)

    def forward(self, point: torch.Tensor) -> torch.Tensor:
        x = self.features(point)
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.out(x).squeeze(-1)


def pure(module: nn.Module):
    """The module as a function of its parameters."""

    def call(parameters: dict[str, torch.Tensor], points: torch.Tensor) -> torch.Tensor:
        return functional_call(module, parameters, (points,))

    return call
