"""A grid river: an otter swims for fish against the current."""

import random

MOVES = [(0, 1), (0, -1), (1, 0), (-1, 0), (0, 0)]


class River:
    def __init__(self, size: int, seed: int) -> None:
        self.size, self.rng = size, random.Random(seed)
        self.reset()

    def reset(self) -> list[float]:
        self.time = 0
        self.otter = [self.rng.randrange(self.size), self.rng.randrange(self.size)]
        self.fish = [self.rng.randrange(self.size), self.rng.randrange(self.size)]
        self.current = self.rng.choice([-1, 0, 1])
        return self.view()

    def view(self) -> list[float]:
        s = self.size
        (a, b), (c, d) = self.otter, self.fish
        return [a / s, b / s, c / s, d / s, (c - a) / s, (d - b) / s, float(self.current), self.time / 40]

    def step(self, action: int) -> tuple[list[float], float, bool]:
        self.time += 1
        before = abs(self.otter[0] - self.fish[0]) + abs(self.otter[1] - self.fish[1])
        dx, dy = MOVES[action]
        drift = self.current if self.rng.random() < 0.2 else 0
        self.otter[0] = min(self.size - 1, max(0, self.otter[0] + dx + drift))
        self.otter[1] = min(self.size - 1, max(0, self.otter[1] + dy))
        after = abs(self.otter[0] - self.fish[0]) + abs(self.otter[1] - self.fish[1])
        if after == 0:
            return self.view(), 1.0, True
        return self.view(), 0.1 * (before - after) - 0.01, self.time >= 40
