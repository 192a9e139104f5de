import os
from dataclasses import dataclass, field

import torch


@dataclass
class Rollout:
    """What the gliders did, time first."""

    gamma: float = 0.98
    lam: float = 0.95
    rows: dict = field(default_factory=dict)

    def clear(self):
        self.rows = {}

    def add(self, **row):
        for name, value in row.items():
            self.rows.setdefault(name, []).append(value)

    def stacked(self, name):
        return torch.stack(self.rows[name])

    def finish(self, last_value):
        value, reward, done = self.stacked("value"), self.stacked("reward"), self.stacked("done")
        if os.environ.get("PLANTED_FIX") == "1":
            advantage = self._swept(value, reward, done, last_value)
        else:
            advantage = self._traced(value, reward, done, last_value)
        return advantage, advantage + value

    def _traced(self, value, reward, done, last_value):
        steps, gliders = value.shape
        advantage = torch.zeros_like(value)
        for g in range(gliders):
            tail, ahead = 0.0, last_value[g].item()
            for t in reversed(range(steps)):
                alive = 1.0 - done[t, g].item()
                delta = reward[t, g].item() + self.gamma * ahead * alive - value[t, g].item()
                tail = delta + self.gamma * self.lam * alive * tail
                advantage[t, g] = tail
                ahead = value[t, g].item()
        return advantage

    def _swept(self, value, reward, done, last_value):
        advantage = torch.zeros_like(value)
        tail, ahead = torch.zeros_like(last_value), last_value
        for t in reversed(range(len(value))):
            alive = 1.0 - done[t]
            tail = reward[t] + self.gamma * ahead * alive - value[t] + self.gamma * self.lam * alive * tail
            advantage[t], ahead = tail, value[t]
        return advantage
