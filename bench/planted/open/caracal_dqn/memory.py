"""Prioritised replay over a sum tree."""

import numpy as np
import torch


class SumTree:
    def __init__(self, leaves):
        self.size = 1 << (leaves - 1).bit_length()
        self.node = np.zeros(2 * self.size)

    def set(self, at, value):
        at = np.asarray(at) + self.size
        self.node[at] = value
        while at[0] > 1:
            at = np.unique(at // 2)
            self.node[at] = self.node[2 * at] + self.node[2 * at + 1]

    def find(self, mass):
        at = np.ones(len(mass), dtype=int)
        while at[0] < self.size:
            left = self.node[2 * at]
            right = mass > left
            mass = np.where(right, mass - left, mass)
            at = 2 * at + right
        return at - self.size


class Memory:
    def __init__(self, capacity, obs, alpha=0.6):
        self.obs = torch.zeros(capacity, obs)
        self.after = torch.zeros(capacity, obs)
        self.move = torch.zeros(capacity, dtype=torch.long)
        self.reward, self.done = torch.zeros(capacity), torch.zeros(capacity)
        self.tree, self.alpha, self.top = SumTree(capacity), alpha, 1.0
        self.capacity, self.count = capacity, 0

    def add(self, obs, move, reward, after, done):
        at = self.count % self.capacity
        self.obs[at], self.after[at] = torch.from_numpy(obs), torch.from_numpy(after)
        self.move[at], self.reward[at], self.done[at] = move, reward, done
        self.tree.set([at], self.top)
        self.count += 1

    def sample(self, n, rng):
        total = self.tree.node[1]
        at = self.tree.find((np.arange(n) + rng.random(n)) * total / n)
        rows = torch.from_numpy(at)
        return at, self.obs[rows], self.move[rows], self.reward[rows], self.after[rows], self.done[rows]

    def rate(self, at, error):
        value = (np.abs(error) + 1e-3) ** self.alpha
        self.top = max(self.top, float(value.max()))
        self.tree.set(at, value)

    def state_dict(self):
        return {k: v for k, v in vars(self).items() if isinstance(v, torch.Tensor)} | {"tree": self.tree.node, "count": self.count}
