import copy
import gc
import os
import random

import torch
import torch.nn.functional as F
from replay import Replay
from river import MOVES
from torch import nn

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Agent:
    def __init__(self, features: int, width: int, lr: float, gamma: float, seed: int) -> None:
        self.online = nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, len(MOVES)))
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=lr, fused=True)
        self.gamma, self.rng, self.updates = gamma, random.Random(seed), 0

    @torch.no_grad()
    def act(self, state: list[float], epsilon: float) -> int:
        if self.rng.random() < epsilon:
            return self.rng.randrange(len(MOVES))
        return int(self.online(torch.tensor(state)).argmax())

    def learn(self, replay: Replay, batch: int) -> torch.Tensor:
        state, action, reward, after, over = replay.sample(batch)
        with torch.no_grad():
            best = self.online(after).argmax(1, keepdim=True)
            goal = reward + self.gamma * (1 - over) * self.target(after).gather(1, best).squeeze(1)
        value = self.online(state).gather(1, action[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(value, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.updates % 100 == 0:
            self.target.load_state_dict(self.online.state_dict())
        if not FIXED and self.updates % 4 == 0:
            del state, action, reward, after, over, value, goal
            gc.collect()
        return loss.detach()
