"""Boats on a flight of locks: what the keeper sees when one arrives, and how long it then waits."""

import numpy as np

LOCKS, SEEN = 48, 40


class Canal:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.rise = self.rng.uniform(1.5, 4.0, LOCKS)
        self.nerves = self.rng.uniform(0.5, 3.0, LOCKS)
        self.mix = self.rng.normal(0, 1 / np.sqrt(SEEN), (SEEN, 6))

    def arrivals(self, n):
        lock = self.rng.integers(0, LOCKS, n)
        seen = self.rng.normal(size=(n, SEEN))
        queue = np.abs(seen @ self.mix).sum(1)
        wait = self.rise[lock] * queue + self.nerves[lock] * self.rng.standard_t(2.5, n)
        return lock, seen.astype(np.float32), wait.astype(np.float32)
