"""A hidden state that drifts with the duty, integrated by Runge and Kutta's rule of order four."""

import torch
from torch import nn


class Drift(nn.Module):
    def __init__(self, state: int, duty: int, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(state + duty, width)
        self.outer = nn.Linear(width, state)

    def forward(self, state: torch.Tensor, duty: torch.Tensor) -> torch.Tensor:
        return self.outer(torch.tanh(self.inner(torch.cat([state, duty], dim=1))))


class Fade(nn.Module):
    def __init__(self, state: int, width: int, substeps: int, duty: int = 3) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.zeros(state))
        self.drift = Drift(state, duty, width)
        self.capacity = nn.Linear(state, 1)
        self.substeps = substeps

    def advance(self, state: torch.Tensor, duty: torch.Tensor, span: float) -> torch.Tensor:
        k1 = self.drift(state, duty)
        k2 = self.drift(state + span / 2 * k1, duty)
        k3 = self.drift(state + span / 2 * k2, duty)
        k4 = self.drift(state + span * k3, duty)
        return state + span / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def forward(self, duty: torch.Tensor, samples: int) -> torch.Tensor:
        span = 1 / ((samples - 1) * self.substeps)
        state = self.start.expand(len(duty), -1)
        states = [state]
        for _ in range(samples - 1):
            for _ in range(self.substeps):
                state = self.advance(state, duty, span)
            states.append(state)
        return 1 + self.capacity(torch.stack(states, dim=1)).squeeze(-1)
