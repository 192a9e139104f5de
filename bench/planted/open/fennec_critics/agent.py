import copy

import torch
from torch import nn


def mlp(sizes, out=nn.Identity):
    layers = []
    for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:])):
        layers += [nn.Linear(a, b), nn.ReLU() if i < len(sizes) - 2 else out()]
    return nn.Sequential(*layers)


class Actor(nn.Module):
    def __init__(self, obs, act, hidden):
        super().__init__()
        self.net = mlp([obs, *hidden, act], nn.Tanh)

    def forward(self, obs):
        return self.net(obs)


class Critics(nn.Module):
    """An ensemble of Q functions."""

    def __init__(self, obs, act, hidden, members):
        super().__init__()
        self.q = nn.ModuleList(mlp([obs + act, *hidden, 1]) for _ in range(members))

    def forward(self, obs, act):
        x = torch.cat([obs, act], dim=-1)
        return torch.stack([q(x).squeeze(-1) for q in self.q])


class Agent(nn.Module):
    def __init__(self, obs, act, hidden=(64, 64), members=8, gamma=0.98, polyak=0.995):
        super().__init__()
        self.pi = Actor(obs, act, hidden)
        self.critics = Critics(obs, act, hidden, members)
        self.targets = copy.deepcopy(self.critics)
        for p in self.targets.parameters():
            p.requires_grad = False
        self.gamma, self.polyak = gamma, polyak

    def q_loss(self, batch, pair):
        with torch.no_grad():
            best = self.targets(batch["obs2"], self.pi(batch["obs2"]))[pair].min(0).values
            backup = batch["rew"] + self.gamma * (1 - batch["done"]) * best
        return (self.critics(batch["obs"], batch["act"]) - backup).pow(2).mean()

    def pi_loss(self, batch):
        return -self.critics(batch["obs"], self.pi(batch["obs"])).mean()

    @torch.no_grad()
    def soft_update(self):
        torch._foreach_lerp_(list(self.targets.parameters()), list(self.critics.parameters()), 1 - self.polyak)
