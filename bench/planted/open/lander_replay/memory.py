import os

import numpy as np

ARRAY = os.environ.get("PLANTED_FIX") == "1"


class RankedMemory:
    """Transitions with priorities; sums of priorities are kept in a binary tree."""

    def __init__(self, capacity=1 << 17, fields=10):
        self.capacity = capacity
        self.rows = np.random.default_rng(7).normal(size=(capacity, fields)).astype(np.float32)
        self.tree = [0.0] * (2 * capacity)
        self.leaves = np.ones(capacity)
        self.rng = np.random.default_rng(1)

    def sample(self, count):
        places = self.rng.integers(0, self.capacity, count)
        return places, self.rows[places]

    def reweigh(self, places, errors):
        if ARRAY:
            self.leaves[places] = np.abs(errors) + 1e-3
            return
        for place, error in zip(places, errors):
            node = int(place) + self.capacity
            self.tree[node] = abs(float(error)) + 1e-3
            while node > 1:
                node //= 2
                self.tree[node] = self.tree[2 * node] + self.tree[2 * node + 1]
