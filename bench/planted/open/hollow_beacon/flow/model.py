"""A gated residual network from a patch to two components of speed."""

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.both, self.back = nn.Linear(width, 2 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.back(nn.functional.glu(self.both(self.norm(x))))


class Surface(nn.Sequential):
    def __init__(self, inputs: int, width: int, depth: int) -> None:
        super().__init__(nn.Linear(inputs, width), *[Gate(width) for _ in range(depth)], nn.LayerNorm(width), nn.Linear(width, 2))
