"""The policy, and what a round of voyages leaves."""

from dataclasses import dataclass

import torch
from torch import nn

from harbor.waters import MOVES, Harbour


class Pilot(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.action, self.value = nn.Linear(width, len(MOVES)), nn.Linear(width, 1)

    def forward(self, seen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = self.body(seen)
        return self.action(h), self.value(h).squeeze(-1)


@dataclass
class Round:
    """All of shape (time, boats), what is seen (time, boats, 6)."""

    seen: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor

    def returns(self, gamma: float) -> torch.Tensor:
        out, after = torch.empty_like(self.rewards), torch.zeros_like(self.rewards[0])
        for time in reversed(range(len(out))):
            after = out[time] = self.rewards[time] + gamma * after
        return out


@torch.no_grad()
def sail(harbour: Harbour, pilot: Pilot, length: int) -> Round:
    seen, actions, rewards, now = [], [], [], harbour.reset()
    for _ in range(length):
        action = torch.multinomial(pilot(now)[0].softmax(-1), 1, generator=harbour.generator).squeeze(-1)
        seen.append(now)
        actions.append(action)
        now, reward = harbour.step(action)
        rewards.append(reward)
    return Round(torch.stack(seen), torch.stack(actions), torch.stack(rewards))
