"""Made-up flights: a bird glides under drag and a gust; the state some time later is to be predicted."""

import random

import torch

STATE, GUST = 4, 3


def wind(gust: torch.Tensor, time: float) -> torch.Tensor:
    """Horizontal and vertical wind at a time."""
    strength, pitch, speed = gust.unbind(-1)
    phase = speed * time
    return torch.stack([strength * torch.cos(phase + pitch), 0.3 * strength * torch.sin(phase - pitch)], dim=-1)


def glide(state: torch.Tensor, gust: torch.Tensor, horizon: float, steps: int = 8) -> torch.Tensor:
    """Midpoint rule for position and velocity."""
    place, speed = state[..., :2], state[..., 2:]
    step = horizon / steps
    gravity = torch.tensor([0.0, -0.4])
    for number in range(steps):
        drag = speed - wind(gust, number * step)
        half = speed + 0.5 * step * (gravity - 0.6 * drag * drag.norm(dim=-1, keepdim=True))
        drag = half - wind(gust, (number + 0.5) * step)
        place, speed = place + step * half, speed + step * (gravity - 0.6 * drag * drag.norm(dim=-1, keepdim=True))
    return torch.cat([place, speed], dim=-1)


class Flights:
    """New flights for each batch, from a source of its own."""

    def __init__(self, horizon: float, seed: int) -> None:
        self.horizon, self.rng = horizon, random.Random(seed)

    def draw(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        source = torch.Generator().manual_seed(self.rng.randrange(2**31))
        state = torch.randn(count, STATE, generator=source)
        gust = torch.rand(count, GUST, generator=source) * 2
        return torch.cat([state, gust], dim=-1), glide(state, gust, self.horizon) - state
