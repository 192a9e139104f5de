"""Flights of locks on many canals at once. A keeper moves one paddle a time and wants boats through and water kept."""

import torch

LOCKS = 5
MOVES = 2 * LOCKS + 1
SEEN = 4 * LOCKS + 2


class Canals:
    def __init__(self, count, seed):
        self.dice = torch.Generator().manual_seed(seed)
        self.count = count
        self.level = torch.rand(count, LOCKS, generator=self.dice)
        self.boats = torch.zeros(count, LOCKS)
        self.queue = torch.zeros(count, 2)
        self.last = torch.zeros(count, 2 * LOCKS)

    def look(self):
        return torch.cat([self.level, self.boats, self.last, self.queue / 4], 1)

    def act(self, move):
        turn = torch.nn.functional.one_hot(move, MOVES).float()[:, : 2 * LOCKS]
        fill, drain = turn.chunk(2, 1)
        below = torch.roll(self.level, -1, 1)
        spilled = 0.5 * drain * self.level
        self.level = (self.level + 0.5 * fill * (1 - self.level) - spilled).clamp(0, 1)
        gate = (drain * (self.level - below).abs() < 0.35) * drain
        moving = gate * self.boats
        self.boats = (self.boats - moving + torch.roll(moving, 1, 1)).clamp(0, 1)
        entering = (self.queue[:, 0] > 0).float() * fill[:, 0] * (1 - self.boats[:, 0])
        self.boats[:, 0] += entering
        arrive = (torch.rand(self.count, 2, generator=self.dice) < 0.2).float()
        self.queue = (self.queue + arrive).clamp(max=8)
        self.queue[:, 0] -= entering
        self.queue.clamp_(min=0)
        self.last = turn
        reward = moving.sum(1) + entering - 0.3 * spilled.sum(1) - 0.02 * self.queue.sum(1)
        return reward
