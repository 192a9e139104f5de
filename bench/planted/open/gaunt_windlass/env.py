"""A batch of cart-and-crane tasks: bring a hanging load to a target without swinging."""

import numpy as np


class CraneEnv:
    DT = 0.05
    FORCES = np.array([-4.0, -1.0, 0.0, 1.0, 4.0])

    def __init__(self, n_envs, horizon, rng):
        self.n, self.horizon, self.rng = n_envs, horizon, rng
        self.obs_dim, self.n_actions = 6, len(self.FORCES)

    def reset(self):
        n = self.n
        self.x = self.rng.uniform(-1, 1, n)
        self.v = np.zeros(n)
        self.theta = self.rng.uniform(-0.2, 0.2, n)
        self.omega = np.zeros(n)
        self.target = self.rng.uniform(-2, 2, n)
        self.t = self.rng.integers(0, self.horizon, n)
        return self.observe()

    def observe(self):
        cols = [self.x - self.target, self.v, np.sin(self.theta), np.cos(self.theta), self.omega, self.t / self.horizon]
        return np.stack(cols, axis=1).astype(np.float32)

    def step(self, actions):
        force = self.FORCES[actions]
        acc = force - 0.3 * self.v + 0.2 * np.sin(self.theta) * self.omega**2
        alpha = -9.8 * np.sin(self.theta) - acc * np.cos(self.theta) - 0.05 * self.omega
        self.v = self.v + self.DT * acc
        self.x = self.x + self.DT * self.v
        self.omega = self.omega + self.DT * alpha
        self.theta = self.theta + self.DT * self.omega
        self.t = self.t + 1
        reward = -np.abs(self.x - self.target) - 0.5 * np.abs(self.theta) - 0.01 * np.abs(force)
        out = np.abs(self.x) > 6
        reward = np.where(out, reward - 10.0, reward)
        done = out | (self.t >= self.horizon)
        k = int(done.sum())
        if k:
            self.x[done] = self.rng.uniform(-1, 1, k)
            self.v[done] = 0.0
            self.theta[done] = self.rng.uniform(-0.2, 0.2, k)
            self.omega[done] = 0.0
            self.target[done] = self.rng.uniform(-2, 2, k)
            self.t[done] = 0
        return self.observe(), (0.1 * reward).astype(np.float32), done.astype(np.float32)
