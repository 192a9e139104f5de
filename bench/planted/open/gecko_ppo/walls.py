"""Many geckos on a wall at once: climb towards a drifting target that is seen only now and then."""

import numpy as np


class Walls:
    def __init__(self, count: int, seed: int, length: int = 60):
        self.count, self.length = count, length
        self.rng = np.random.default_rng(seed)
        self.place = np.zeros((count, 2), np.float32)
        self.speed = np.zeros((count, 2), np.float32)
        self.target = np.zeros((count, 2), np.float32)
        self.age = np.zeros(count, np.int64)
        self.reset(np.ones(count, bool))

    def reset(self, which: np.ndarray) -> None:
        n = int(which.sum())
        self.place[which] = self.rng.uniform(-1, 1, (n, 2))
        self.target[which] = self.rng.uniform(-1, 1, (n, 2))
        self.speed[which] = 0
        self.age[which] = self.rng.integers(0, self.length // 2, n)

    def observe(self) -> np.ndarray:
        seen = self.rng.random((self.count, 1)) < 0.5
        hint = np.where(seen, self.target, 0.0)
        return np.concatenate([self.place, self.speed, hint, seen], axis=1).astype(np.float32)

    def step(self, action: np.ndarray):
        push = np.stack([np.cos(action * np.pi / 3), np.sin(action * np.pi / 3)], axis=1) * 0.04
        self.speed = (0.85 * self.speed + push).astype(np.float32)
        self.place = np.clip(self.place + self.speed, -1.5, 1.5)
        self.target += self.rng.normal(0, 0.01, self.target.shape).astype(np.float32)
        reward = -np.linalg.norm(self.place - self.target, axis=1).astype(np.float32)
        self.age += 1
        done = self.age >= self.length
        self.reset(done)
        return self.observe(), reward, done
