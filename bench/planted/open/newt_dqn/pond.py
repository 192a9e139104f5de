"""A newt in a pond with drifting flies. The state is what 24 rays see, twice (now and before)."""

import numpy as np


class Pond:
    actions, rays = 5, 24

    def __init__(self, seed: int, flies: int = 6, length: int = 120):
        self.rng, self.flies, self.length = np.random.default_rng(seed), flies, length
        self.angles = np.linspace(0, 2 * np.pi, self.rays, endpoint=False)
        self.moves = np.array([[0, 0], [0.08, 0], [-0.08, 0], [0, 0.08], [0, -0.08]])
        self.reset()

    def reset(self) -> np.ndarray:
        self.me = np.zeros(2)
        self.them = self.rng.uniform(-1, 1, (self.flies, 2))
        self.age, self.before = 0, np.zeros(self.rays, np.float32)
        return self.look()

    def look(self) -> np.ndarray:
        gap = self.them - self.me
        far = np.hypot(gap[:, 0], gap[:, 1])
        ray = (np.arctan2(gap[:, 1], gap[:, 0]) % (2 * np.pi) / (2 * np.pi) * self.rays).astype(int) % self.rays
        now = np.zeros(self.rays, np.float32)
        np.maximum.at(now, ray, np.exp(-2 * far))
        state = np.concatenate([now, self.before])
        self.before = now
        return state

    def step(self, action: int):
        self.me = np.clip(self.me + self.moves[action], -1, 1)
        self.them = np.clip(self.them + self.rng.normal(0, 0.02, self.them.shape), -1, 1)
        near = np.abs(self.them - self.me).max(1) < 0.1
        self.them[near] = self.rng.uniform(-1, 1, (int(near.sum()), 2))
        self.age += 1
        return self.look(), float(near.sum()) - 0.01, self.age >= self.length
