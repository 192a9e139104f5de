import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Dueling(nn.Module):
    def __init__(self, width: int, actions: int, hidden: int = 256):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.value, self.gain = nn.Linear(hidden, 1), nn.Linear(hidden, actions)

    def forward(self, x):
        h = self.body(x)
        gain = self.gain(h)
        return self.value(h) + gain - gain.mean(1, keepdim=True)


class Agent:
    """Double DQN with a slowly following target."""

    def __init__(self, width: int, actions: int, lr: float, gamma: float, tau: float):
        self.online = Dueling(width, actions)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=lr, fused=True)
        self.gamma, self.tau = gamma, tau

    @torch.no_grad()
    def act(self, state) -> int:
        return int(self.online(torch.from_numpy(state)[None]).argmax())

    def learn(self, state, action, reward, after, end) -> float:
        with torch.no_grad():
            best = self.online(after).argmax(1, keepdim=True)
            goal = reward + self.gamma * (1 - end) * self.target(after).gather(1, best).squeeze(1)
        guess = self.online(state).gather(1, action[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(guess, goal)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(self.target.parameters()), list(self.online.parameters()), self.tau)
        return loss.item()
