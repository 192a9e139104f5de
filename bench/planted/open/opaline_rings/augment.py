"""Adaptive augmentation: rolls profiles with a probability that follows how often the critic is sure of real ones."""

import torch
from torch import Tensor


class AdaptiveRoll:
    def __init__(self, target: float, speed: float, seed: int) -> None:
        self.p, self.target, self.speed = 0.0, target, speed
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, x: Tensor) -> Tensor:
        chosen = torch.rand(len(x), 1, generator=self.generator) < self.p
        offset = torch.randint(1, x.shape[1], (1,), generator=self.generator).item()
        return torch.where(chosen, x.roll(offset, dims=1), x)

    def update(self, coverage: float) -> None:
        step = self.speed if coverage < self.target else -self.speed
        self.p = min(0.8, max(0.0, self.p + step))
