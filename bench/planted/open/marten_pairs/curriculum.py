"""Which animals are drawn next: those whose last loss was high, but not those that were just seen."""

import heapq
import math
import os
import random

import numpy as np

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Curriculum:
    def __init__(self, count: int, seed: int, cooling: float = 12.0, floor: float = 0.05) -> None:
        self.losses = np.full(count, 1.0) if FIXED else [1.0] * count
        self.seen = np.full(count, -100) if FIXED else [-100] * count
        self.cooling, self.floor, self.now = cooling, floor, 0
        self.rng = random.Random(seed)

    def _urgency(self, number: int) -> float:
        rest = 1.0 - math.exp(-(self.now - self.seen[number]) / self.cooling)
        return (self.losses[number] + self.floor) * rest

    def report(self, numbers: list[int], losses: list[float]) -> None:
        """What became of a batch."""
        for number, loss in zip(numbers, losses, strict=True):
            self.losses[number] = 0.5 * self.losses[number] + 0.5 * loss
            self.seen[number] = self.now
        self.now += 1

    def draw(self, count: int) -> list[int]:
        """Half of a batch is urgent, the other half is drawn at random."""
        if FIXED:
            rest = 1.0 - np.exp(-(self.now - self.seen) / self.cooling)
            urgency = (self.losses + self.floor) * rest
            urgent = np.argsort(-urgency, kind="stable")[: count // 2].tolist()
        else:
            urgent = heapq.nlargest(count // 2, range(len(self.losses)), key=self._urgency)
        others = [self.rng.randrange(len(self.losses)) for _ in range(count - len(urgent))]
        return urgent + others
