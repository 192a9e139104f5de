"""Player and listener."""

import torch
from torch import nn
from torch.nn import functional as F

from ocarina import POINTS

AIR = 24


class Player(nn.Module):
    def __init__(self, width=288):
        super().__init__()
        self.first = nn.Linear(AIR, width)
        self.second = nn.Linear(width, width)
        self.third = nn.Linear(width, width)
        self.out = nn.Linear(width, POINTS)

    def forward(self, air):
        h = F.relu(self.first(air))
        h = h + F.relu(self.second(h))
        h = h + F.relu(self.third(h))
        return torch.tanh(self.out(h)) * 1.1


class Listener(nn.Module):
    def __init__(self, width=288):
        super().__init__()
        self.ear = nn.Sequential(
            nn.Linear(POINTS, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, 1)
        )

    def forward(self, tone):
        return self.ear(tone).squeeze(-1)


def listen(listener, real, played):
    """Hinge loss of the listener."""
    heard, fooled = listener(torch.cat((real, played))).chunk(2)
    return F.relu(1 - heard).mean() + F.relu(1 + fooled).mean()


def please(listener, played):
    return -listener(played).mean()
