"""Double DQN with a duelling head."""

import copy

import torch
from housekeeping import frugal
from torch import nn


class Duel(nn.Module):
    def __init__(self, inputs: int, width: int, actions: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.value, self.advantage = nn.Linear(width, 1), nn.Linear(width, actions)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.body(x)
        advantage = self.advantage(h)
        return self.value(h) + advantage - advantage.mean(1, keepdim=True)


class Agent:
    def __init__(self, inputs: int, width: int, actions: int, lr: float, discount: float, follow: float) -> None:
        self.online = Duel(inputs, width, actions)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=lr)
        self.discount, self.follow = discount, follow

    @torch.no_grad()
    def choose(self, state: list[float]) -> int:
        return int(self.online(torch.tensor([state])).argmax())

    @frugal
    def learn(self, batch: dict[str, torch.Tensor]) -> float:
        with torch.no_grad():
            best = self.online(batch["following"]).argmax(1, keepdim=True)
            future = self.target(batch["following"]).gather(1, best).squeeze(1)
            wanted = batch["reward"] + self.discount * (1 - batch["done"]) * future
        guess = self.online(batch["state"]).gather(1, batch["action"][:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(guess, wanted)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), 10.0)
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(self.target.parameters()), list(self.online.parameters()), self.follow)
        return loss.item()
