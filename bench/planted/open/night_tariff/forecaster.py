"""A transformer that forecasts the next half hour with an uncertainty."""

import torch
from layers import RMS, Gated, Remember
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before, self.between = RMS(width), RMS(width)
        self.remember, self.gated = Remember(width, heads), Gated(width, 2 * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.remember(self.before(x))
        return x + self.gated(self.between(x))


class Forecaster(nn.Module):
    def __init__(self, width: int, heads: int, blocks: int) -> None:
        super().__init__()
        self.enter = nn.Linear(3, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm, self.leave = RMS(width), nn.Linear(width, 2)

    def forward(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.enter(inputs)
        for block in self.blocks:
            x = block(x)
        mean, spread = self.leave(self.norm(x)).unbind(-1)
        return mean, nn.functional.softplus(spread) + 1e-3

    def loss(self, inputs: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        mean, spread = self(inputs)
        return (0.5 * ((target - mean) / spread) ** 2 + spread.log()).mean()
