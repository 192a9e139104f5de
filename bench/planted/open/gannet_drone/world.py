"""Drones that should hover over a moving buoy; all of them move at once."""

import numpy as np


class World:
    def __init__(self, params):
        w = params.world
        self.rng = np.random.default_rng(params.seed)
        self.drag, self.count = w.drag, w.drones
        self.lens = self.rng.normal(0, 0.5, size=(8, w.sensors)).astype(np.float32)
        self.thrust = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]], dtype=np.float32) * 0.15
        self.reset()

    def reset(self):
        self.place = self.rng.normal(0, 1, size=(self.count, 2)).astype(np.float32)
        self.speed = np.zeros_like(self.place)
        self.buoy = self.rng.normal(0, 1, size=(self.count, 2)).astype(np.float32)
        self.drift = self.rng.normal(0, 0.03, size=(self.count, 2)).astype(np.float32)
        return self.observe()

    def observe(self):
        state = np.concatenate([self.place, self.speed, self.buoy, self.drift * 10], axis=1)
        return np.tanh(state @ self.lens)

    def step(self, action: np.ndarray):
        self.speed = self.speed * (1 - self.drag) + self.thrust[action]
        self.place = self.place + self.speed
        self.buoy = self.buoy + self.drift
        gap = np.linalg.norm(self.place - self.buoy, axis=1)
        lost = gap > 4.0
        reward = np.exp(-gap) - 0.5 * lost
        if lost.any():
            n = int(lost.sum())
            self.place[lost] = self.rng.normal(0, 1, size=(n, 2))
            self.buoy[lost] = self.rng.normal(0, 1, size=(n, 2))
            self.speed[lost] = 0
        return self.observe(), reward.astype(np.float32), lost
