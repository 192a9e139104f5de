import torch
from torch import nn

from trays import CHANNELS, CLASSES, HOURS


def pupil(width):
    return nn.Sequential(
        nn.Linear(HOURS * CHANNELS, width),
        nn.GELU(),
        nn.Linear(width, width),
        nn.GELU(),
        nn.Linear(width, width),
        nn.GELU(),
        nn.Linear(width, CLASSES),
    )


class Panel(nn.Module):
    """Three seed analysts of the old station; the pupil learns from their mean."""

    def __init__(self, width):
        super().__init__()
        self.seats = nn.ModuleList(
            nn.Sequential(nn.Linear(HOURS * CHANNELS, width), nn.Tanh(), nn.Linear(width, CLASSES)) for _ in range(3)
        )
        self.requires_grad_(False).eval()

    @torch.no_grad()
    def forward(self, seen):
        return sum(seat(seen) for seat in self.seats).mul(2).log_softmax(1)
