"""An additive model: one little net a feature, so that each effect can be drawn, frozen or replaced for the supervisor.

The nets are evaluated together: their weights are stacked, then one batched product a layer serves all features.
"""

import torch
from torch import Tensor, nn


class Effect(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.enter, self.inner, self.leave = nn.Linear(1, width), nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, column: Tensor) -> Tensor:
        return self.leave(torch.relu(self.inner(torch.relu(self.enter(column)))))


def together(layers: list[nn.Linear], x: Tensor) -> Tensor:
    weight = torch.stack([layer.weight for layer in layers])
    bias = torch.stack([layer.bias for layer in layers])
    return torch.baddbmm(bias[:, None], x, weight.transpose(1, 2))


class Additive(nn.Module):
    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.effects = nn.ModuleList(Effect(width) for _ in range(features))
        self.base = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        h = x.t()[..., None]
        h = torch.relu(together([effect.enter for effect in self.effects], h))
        h = torch.relu(together([effect.inner for effect in self.effects], h))
        return self.base + together([effect.leave for effect in self.effects], h).sum(dim=(0, 2))
