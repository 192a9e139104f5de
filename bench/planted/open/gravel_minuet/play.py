"""Guesses a puppet's role from its joints."""

import os
import time
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader

from puppets import TRAITS, Chest
from troupe import Stage


@dataclass(frozen=True)
class Config:
    puppets: int = 1500
    roles: int = 8
    batch: int = 48
    width: int = 32
    layers: int = 2
    lr: float = 2e-3
    seed: int = 6
    steps: int = int(os.environ.get("PLANTED_STEPS", 1500))
    tell: int = 250


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.send, self.stay, self.norm = nn.Linear(width, width), nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, h, stage):
        got = torch.zeros_like(h).index_add(0, stage.head, self.send(h).index_select(0, stage.tail))
        return self.norm(h + nn.functional.relu(self.stay(h) + got))


class Critic(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.enter = nn.Linear(TRAITS, c.width)
        self.layers = nn.ModuleList(Layer(c.width) for _ in range(c.layers))
        self.leave = nn.Linear(c.width, c.roles)

    def forward(self, stage):
        h = self.enter(stage.joints)
        for layer in self.layers:
            h = layer(h, stage)
        return self.leave(h.new_zeros(len(stage.role), h.shape[1]).index_add(0, stage.owner, h) / 70)


def endless(c):
    order = torch.Generator().manual_seed(c.seed)
    loader = DataLoader(Chest(c.puppets, c.roles, c.seed), c.batch, shuffle=True, drop_last=True, collate_fn=Stage.of, generator=order)
    while True:
        yield from loader


def run(c: Config):
    torch.manual_seed(c.seed)
    critic, stages = Critic(c), endless(c)
    rule = torch.optim.RMSprop(critic.parameters(), c.lr)
    began = time.time()
    for step in range(1, c.steps + 1):
        stage = next(stages)
        loss = nn.functional.cross_entropy(critic(stage), stage.role)
        rule.zero_grad()
        loss.backward()
        rule.step()
        if step % c.tell == 0:
            print(f"act {step // c.tell}: {loss.item():.4f}", flush=True)
    print(f"{c.steps} steps in {time.time() - began:.3f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    run(Config())
