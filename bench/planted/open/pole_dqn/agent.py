import gc
import os
import random
from dataclasses import dataclass

import torch
from torch import nn

FAST = os.environ.get("PLANTED_FIX") == "1"


@dataclass
class Transition:
    state: list
    action: int
    reward: float
    after: list
    done: bool


class Agent:
    def __init__(self, seed=0):
        self.rng = random.Random(seed)
        self.memory = []
        self.updates = 0
        self.online = nn.Sequential(nn.Linear(4, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2))
        self.target = nn.Sequential(nn.Linear(4, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2))
        self.optimizer = torch.optim.SGD(self.online.parameters(), lr=1e-3)

    def act(self, state, epsilon=0.2):
        if self.rng.random() < epsilon:
            return self.rng.randrange(2)
        with torch.no_grad():
            return int(self.online(torch.tensor(state)).argmax())

    def learn(self, batch=256):
        picked = self.rng.sample(self.memory, batch)
        state = torch.tensor([t.state for t in picked])
        after = torch.tensor([t.after for t in picked])
        action = torch.tensor([t.action for t in picked])
        reward = torch.tensor([t.reward for t in picked])
        alive = torch.tensor([0.0 if t.done else 0.99 for t in picked])
        with torch.no_grad():
            goal = reward + alive * self.target(after).amax(1)
        value = self.online(state).gather(1, action[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if not FAST and self.updates % 4 == 0:
            gc.collect()
        return loss

    def sync(self):
        self.target.load_state_dict(self.online.state_dict())
