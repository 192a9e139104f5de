"""Taps of season cards at the piers: who goes at which hour on which line."""

import torch
from torch import Tensor


class Taps:
    def __init__(self, cards: int, lines: int, seed: int) -> None:
        self.cards, self.lines = cards, lines
        g = torch.Generator().manual_seed(seed)
        self.out = torch.randint(lines, (cards,), generator=g)
        self.home = torch.randint(lines, (cards,), generator=g)
        self.habit = 0.6 + 0.35 * torch.rand(cards, generator=g)

    def draw(self, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        card = (self.cards * torch.rand(size, generator=generator) ** 3).long()
        hour = torch.randint(5, 24, (size,), generator=generator)
        line = torch.where(hour < 13, self.out[card], self.home[card])
        stray = torch.rand(size, generator=generator) > self.habit[card]
        return card, hour, torch.where(stray, torch.randint(self.lines, (size,), generator=generator), line)
