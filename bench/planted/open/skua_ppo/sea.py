"""Gliders over a swell: each must hold a height with two flaps. All gliders move at once, in NumPy."""

import numpy as np

ACTIONS = 5
OBS = 9


class Swell:
    def __init__(self, gliders, seed):
        self.rng = np.random.default_rng(seed)
        self.n = gliders
        self.state = np.zeros((gliders, 4))
        self.age = np.zeros(gliders, dtype=int)
        self.reset(np.ones(gliders, dtype=bool))

    def reset(self, which):
        k = int(which.sum())
        self.state[which] = self.rng.normal(0, 0.3, (k, 4))
        self.age[which] = 0

    def observe(self):
        height, speed, tilt, goal = self.state.T
        wave = np.sin(0.2 * self.age)
        obs = np.stack([height, speed, tilt, goal, goal - height, wave, np.cos(0.2 * self.age), speed * tilt, np.abs(tilt)], 1)
        return obs.astype(np.float32)

    def step(self, action):
        push = (action - 2) * 0.05
        height, speed, tilt, goal = self.state.T
        tilt = 0.9 * tilt + push + self.rng.normal(0, 0.01, self.n)
        speed = 0.95 * speed + 0.1 * tilt + 0.02 * np.sin(0.2 * self.age)
        height = height + 0.1 * speed
        self.state = np.stack([height, speed, tilt, goal], 1)
        self.age += 1
        reward = 1.0 - np.abs(goal - height) - 0.1 * np.abs(push)
        done = (np.abs(height) > 2.5) | (self.age > 120)
        self.reset(done)
        return self.observe(), reward.astype(np.float32), done
