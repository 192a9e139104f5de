import numpy as np
import torch


class Memory:
    """A ring of transitions in preallocated arrays."""

    def __init__(self, size: int, width: int, seed: int):
        self.state, self.after = np.zeros((size, width), np.float32), np.zeros((size, width), np.float32)
        self.action, self.reward, self.end = np.zeros(size, np.int64), np.zeros(size, np.float32), np.zeros(size, np.float32)
        self.size, self.at, self.filled = size, 0, 0
        self.rng = np.random.default_rng(seed)

    def add(self, state, action, reward, after, end) -> None:
        i = self.at
        self.state[i], self.action[i], self.reward[i], self.after[i], self.end[i] = state, action, reward, after, end
        self.at = (i + 1) % self.size
        self.filled = min(self.filled + 1, self.size)

    def sample(self, count: int) -> list:
        pick = self.rng.integers(0, self.filled, count)
        return [torch.from_numpy(a[pick]) for a in (self.state, self.action, self.reward, self.after, self.end)]
