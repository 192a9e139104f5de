"""A grocer's till: baskets drawn from a few hundred recipes plus whatever lies at the checkout."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Shop:
    items: int = 14000
    recipes: int = 400
    baskets: int = 6000
    seed: int = 20


class Till:
    def __init__(self, shop: Shop):
        rng = np.random.default_rng(shop.seed)
        fame = 1.0 / np.arange(1, shop.items + 1) ** 0.8
        self.fame = rng.permutation(fame / fame.sum())
        self.recipes = rng.integers(0, shop.items, (shop.recipes, 14))
        which = rng.integers(0, shop.recipes, shop.baskets)
        size = rng.integers(4, 11, shop.baskets)
        self.baskets = [rng.permutation(self.recipes[w])[:n] for w, n in zip(which, size)]
        self.items = shop.items

    def counts(self) -> np.ndarray:
        seen = np.bincount(np.concatenate(self.baskets), minlength=self.items)
        return seen + 1.0

    def split(self, share: float = 0.05):
        cut = int(len(self.baskets) * (1 - share))
        return self.baskets[:cut], self.baskets[cut:]
