"""Water levels of a flight of locks, hour by hour. Each lock stands between two pounds and feels its neighbours."""

import numpy as np
import torch

HOURS_PAST, HOURS_AHEAD = 24, 36


class Flight:
    def __init__(self, locks, hours, seed):
        rng = np.random.default_rng(seed)
        self.locks, self.rng = locks, rng
        week = np.arange(hours) % 168
        boats = rng.poisson(0.3 + 1.4 * np.exp(-((((week % 24) - 13) / 4.0) ** 2))[:, None] * rng.uniform(0.4, 1.5, locks))
        level = np.zeros((hours, locks))
        feed = rng.normal(0, 0.1, hours)
        for t in range(1, hours):
            drop = 0.11 * boats[t]
            gain = np.roll(drop, 1) * 0.9
            level[t] = 0.93 * level[t - 1] - drop + gain + 0.05 * feed[t]
        self.level = torch.tensor(level / level.std(), dtype=torch.float32)
        self.boats = torch.tensor(boats, dtype=torch.float32)
        self.week = torch.from_numpy(week)

    def windows(self, n):
        """Past (n, locks, hours, 2), future levels (n, locks, hours), hour of the week at which the future begins."""
        start = torch.from_numpy(self.rng.integers(0, len(self.level) - HOURS_PAST - HOURS_AHEAD, n))
        past = start[:, None] + torch.arange(HOURS_PAST)
        ahead = start[:, None] + HOURS_PAST + torch.arange(HOURS_AHEAD)
        seen = torch.stack([self.level[past], self.boats[past]], -1).transpose(1, 2)
        return seen, self.level[ahead].transpose(1, 2), self.week[ahead[:, 0]]
