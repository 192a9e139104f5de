import torch
from torch import nn
from torch.distributions import Normal


class Actor(nn.Module):
    """A Gaussian policy and a value, on one trunk."""

    def __init__(self, features: int, actions: int, width: int, depth: int) -> None:
        super().__init__()
        sizes = [features, *[width] * depth]
        self.trunk = nn.Sequential(*[layer for a, b in zip(sizes, sizes[1:], strict=False) for layer in (nn.Linear(a, b), nn.Tanh())])
        self.mean, self.value = nn.Linear(width, actions), nn.Linear(width, 1)
        self.spread = nn.Parameter(torch.full((actions,), -0.7))

    def forward(self, seen: torch.Tensor) -> tuple[Normal, torch.Tensor]:
        trunk = self.trunk(seen)
        return Normal(self.mean(trunk), self.spread.exp(), validate_args=False), self.value(trunk).squeeze(-1)
