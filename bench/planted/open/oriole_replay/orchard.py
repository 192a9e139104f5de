"""A small grid world: an oriole looks for fruit and avoids cats."""

import random

ACTIONS = ((0, 1), (0, -1), (1, 0), (-1, 0))


class Orchard:
    def __init__(self, size: int, seed: int) -> None:
        self.size, self.rng = size, random.Random(seed)
        self.reset()

    def _place(self) -> tuple[int, int]:
        return self.rng.randrange(self.size), self.rng.randrange(self.size)

    def reset(self) -> list[float]:
        self.bird, self.fruit, self.cats = self._place(), self._place(), [self._place() for _ in range(3)]
        self.time = 0
        return self.view()

    def view(self) -> list[float]:
        """Where fruit and cats are, seen from the bird."""
        here = self.bird
        things = [self.fruit, *self.cats]
        offsets = [(thing[axis] - here[axis]) / self.size for thing in things for axis in (0, 1)]
        return [here[0] / self.size, here[1] / self.size, *offsets, self.time / 100, 1.0]

    def act(self, action: int) -> tuple[list[float], float, bool]:
        dx, dy = ACTIONS[action]
        self.bird = ((self.bird[0] + dx) % self.size, (self.bird[1] + dy) % self.size)
        self.cats = [((x + self.rng.choice((-1, 0, 1))) % self.size, y) for x, y in self.cats]
        self.time += 1
        reward = -0.01
        if self.bird in self.cats:
            return self.view(), -1.0, True
        if self.bird == self.fruit:
            reward, self.fruit = 1.0, self._place()
        return self.view(), reward, self.time >= 100
