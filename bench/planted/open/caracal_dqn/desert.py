"""A caracal stalks a hare on a bounded plain; rays tell it what lies around."""

import numpy as np

RAYS = 24
OBS = RAYS + 6
MOVES = 9


class Plain:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.angles = np.linspace(0, 2 * np.pi, RAYS, endpoint=False)
        self.reset()

    def reset(self):
        self.me, self.hare = self.rng.uniform(-1, 1, (2, 2))
        self.wind, self.left = self.rng.normal(0, 0.1, 2), 80
        return self.look()

    def look(self):
        gap = self.hare - self.me
        bearing = np.arctan2(gap[1], gap[0])
        rays = np.exp(-np.abs(np.angle(np.exp(1j * (self.angles - bearing)))) * 2) / (0.2 + np.hypot(*gap))
        return np.concatenate([rays, self.me, gap, self.wind]).astype(np.float32)

    def step(self, move):
        turn = np.array([np.cos(move * np.pi / 4), np.sin(move * np.pi / 4)]) * (move < 8)
        before = np.hypot(*(self.hare - self.me))
        self.me = np.clip(self.me + 0.06 * turn, -1, 1)
        away = (self.hare - self.me) / (1e-3 + before)
        self.hare = np.clip(self.hare + 0.03 * away + 0.02 * self.rng.normal(size=2) + 0.02 * self.wind, -1, 1)
        self.left -= 1
        after = np.hypot(*(self.hare - self.me))
        caught = after < 0.08
        return self.look(), before - after + float(caught), bool(caught or self.left == 0)
