import torch
import torch.nn as nn
from torch.distributions import Categorical


class RecurrentPolicy(nn.Module):
    def __init__(self, observed: int, actions: int, width: int = 128):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(observed, width), nn.Tanh())
        self.cell = nn.GRUCell(width, width)
        self.actor = nn.Linear(width, actions)
        self.critic = nn.Linear(width, 1)
        nn.init.orthogonal_(self.actor.weight, 0.01)

    def start(self, count: int) -> torch.Tensor:
        return torch.zeros(count, self.cell.hidden_size)

    def forward(self, seen: torch.Tensor, h: torch.Tensor):
        h = self.cell(self.encode(seen), h)
        return self.actor(h), self.critic(h).squeeze(-1), h

    def unroll(self, seen: torch.Tensor, h: torch.Tensor, done: torch.Tensor):
        """Over time; the state is forgotten where an episode ended."""
        logits, values = [], []
        for t in range(seen.size(0)):
            a, v, h = self(seen[t], h)
            h = h * (1 - done[t])[:, None]
            logits.append(a)
            values.append(v)
        return Categorical(logits=torch.stack(logits)), torch.stack(values)
