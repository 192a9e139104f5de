import numpy as np


class Arena:
    """A chaser on a line of cells with wind; reward for standing near the prey."""

    actions = 3

    def __init__(self, seed, width=12):
        self.rng = np.random.default_rng(seed)
        self.width = width
        self.reset()

    def reset(self):
        self.me, self.prey = self.rng.uniform(-1, 1, 2)
        self.speed, self.age = 0.0, 0
        return self.observe()

    def observe(self):
        base = np.array([self.me, self.prey, self.speed, self.prey - self.me], np.float32)
        return np.concatenate([base, np.sin(base * 3), np.cos(base * 3)]).astype(np.float32)

    def step(self, action):
        self.speed = 0.8 * self.speed + 0.1 * (action - 1) + self.rng.normal(0, 0.01)
        self.me = float(np.clip(self.me + self.speed, -1, 1))
        self.prey = float(np.clip(self.prey + self.rng.normal(0, 0.05), -1, 1))
        self.age += 1
        return self.observe(), 1.0 - abs(self.me - self.prey), self.age >= 60
