"""A learned vector field and a fixed-step integrator."""

import torch
from torch import nn


class Field(nn.Module):
    def __init__(self, size: int, width: int):
        super().__init__()
        self.one = nn.Linear(size, width)
        self.two = nn.Linear(width, width)
        self.three = nn.Linear(width, size)
        self.gain = nn.Parameter(torch.tensor(0.3))

    def forward(self, state):
        h = torch.tanh(self.one(state))
        h = h + torch.tanh(self.two(h))
        return self.gain * self.three(h)


def rk4(field, state, dt: float):
    a = field(state)
    b = field(state + 0.5 * dt * a)
    c = field(state + 0.5 * dt * b)
    d = field(state + dt * c)
    return state + dt / 6 * (a + 2 * b + 2 * c + d)


def unroll(field, state, dt: float, points: int):
    rows = [state]
    for _ in range(points - 1):
        rows.append(rk4(field, rows[-1], dt))
    return torch.stack(rows, 1)
