"""Message passing along the towpath."""

import torch
from torch import nn

from canal import HOURS_AHEAD, HOURS_PAST


class Towpath(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down, self.own = (nn.Linear(width, width) for _ in range(3))
        self.norm = nn.LayerNorm(width)

    def forward(self, h):
        word = self.up(h.roll(1, 1)) + self.down(h.roll(-1, 1)) + self.own(h)
        return self.norm(h + torch.nn.functional.gelu(word))


class Pounds(nn.Module):
    def __init__(self, locks, width, rounds):
        super().__init__()
        self.read = nn.Linear(2 * HOURS_PAST, width)
        self.lock = nn.Embedding(locks, width)
        self.hour = nn.Embedding(168, width)
        self.rounds = nn.ModuleList(Towpath(width) for _ in range(rounds))
        self.tell = nn.Linear(width, HOURS_AHEAD)

    def forward(self, seen, week):
        h = self.read(seen.flatten(2)) + self.lock.weight + self.hour(week)[:, None]
        for towpath in self.rounds:
            h = towpath(h)
        return seen[:, :, -1:, 0] + self.tell(h)
