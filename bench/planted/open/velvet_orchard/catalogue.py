"""The shop's items: what they are and how popular."""

import random
from collections.abc import Callable

from picking import picker


class Catalogue:
    """Items are numbered from 1; 0 fills short histories."""

    def __init__(self, items: int, groups: int, seed: int) -> None:
        rng = random.Random(seed)
        self.items = range(1, items + 1)
        self.group = [0, *(rng.randrange(groups) for _ in self.items)]
        self.members: list[list[int]] = [[] for _ in range(groups)]
        for item in self.items:
            self.members[self.group[item]].append(item)
        self.sold = [1.0 / (rank + 10) ** 0.8 for rank in range(items)]
        rng.shuffle(self.sold)

    def __len__(self) -> int:
        return len(self.items)

    def rivals(self, rng: random.Random) -> Callable[[], int]:
        """Draws of items that compete for attention, by popularity."""
        return picker(self.items, self.sold, rng)
