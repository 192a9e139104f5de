import os

import numpy as np

from . import register

FIXED = os.environ.get("PLANTED_FIX") == "1"


@register("negatives", "uniform")
class UniformNegatives:
    def __init__(self, count, counts, seed):
        self.count, self.n = count, len(counts)
        self.rng = np.random.default_rng(seed)

    def draw(self):
        return self.rng.integers(0, self.n, self.count)


@register("negatives", "popularity")
class PopularityNegatives:
    """Items in proportion to clicks ** power, with replacement."""

    def __init__(self, count, power, counts, seed):
        self.count = count
        weights = counts.astype(np.float64) ** power
        self.p = weights / weights.sum()
        self.rng = np.random.default_rng(seed)
        if FIXED:
            self.cdf = self.p.cumsum()
            self.cdf /= self.cdf[-1]

    def draw(self):
        if FIXED:
            return self.cdf.searchsorted(self.rng.random(self.count), side="right")
        else:
            return self.rng.choice(len(self.p), size=self.count, p=self.p)
