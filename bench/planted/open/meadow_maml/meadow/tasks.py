"""Each meadow has its own growth curve; a task is to continue one from a few plots."""

from dataclasses import dataclass

import torch


@dataclass
class Task:
    support: tuple[torch.Tensor, torch.Tensor]
    query: tuple[torch.Tensor, torch.Tensor]


class Meadows:
    def __init__(self, seed: int, shots: int, queries: int = 40, weather: int = 6) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.shots, self.queries, self.weather = shots, queries, weather

    def _uniform(self, low: float, high: float) -> torch.Tensor:
        return low + (high - low) * torch.rand((), generator=self.generator)

    def draw(self) -> Task:
        height, onset, pace = self._uniform(0.5, 2.0), self._uniform(-1, 1), self._uniform(1, 5)
        thirst = torch.randn(self.weather, generator=self.generator) * 0.2
        x = torch.randn(self.shots + self.queries, 1 + self.weather, generator=self.generator)
        y = height * torch.sigmoid(pace * (x[:, 0] - onset)) + x[:, 1:] @ thirst
        y = y + 0.03 * torch.randn(y.shape, generator=self.generator)
        return Task((x[: self.shots], y[: self.shots]), (x[self.shots :], y[self.shots :]))
