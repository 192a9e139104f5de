"""A toy glider in a column of thermals, in numpy, all gliders at once."""

import numpy as np


class Air:
    def __init__(self, n, seed, length=40):
        self.n, self.length = n, length
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.t = 0
        self.lift = self.rng.normal(size=(self.n, 6)).astype(np.float32)
        self.pos = np.zeros((self.n, 2), dtype=np.float32)
        self.height = np.ones(self.n, dtype=np.float32)
        return self.observe()

    def observe(self):
        return np.concatenate([self.lift, self.pos, self.height[:, None]], axis=1, dtype=np.float32)

    def step(self, action):
        turn = action.astype(np.float32) - 1.0
        self.pos[:, 0] += 0.1 * turn
        self.pos[:, 1] += 0.1
        gain = (self.lift[:, :3] * np.cos(self.pos[:, :1] * np.arange(1, 4))).sum(1).astype(np.float32) * 0.05 - 0.04
        self.height = self.height + gain
        self.t += 1
        return self.observe(), gain, self.t >= self.length
