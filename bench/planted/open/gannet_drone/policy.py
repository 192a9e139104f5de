import torch
from torch import nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self, sensors: int, width: int, actions: int = 5):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(sensors, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.act = nn.Linear(width, actions)
        self.value = nn.Linear(width, 1)
        nn.init.orthogonal_(self.act.weight, 0.01)

    def forward(self, seen):
        hidden = self.body(seen)
        return Categorical(logits=self.act(hidden)), self.value(hidden).squeeze(-1)


@torch.no_grad()
def choose(policy: Policy, seen):
    chances, value = policy(torch.from_numpy(seen))
    action = chances.sample()
    return action.numpy(), chances.log_prob(action), value
