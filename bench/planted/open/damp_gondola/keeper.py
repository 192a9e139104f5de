"""Advantage actor-critic for the keeper of a flight of locks."""

import os
import time

import torch
from torch import nn
from torch.distributions import Categorical

from canal import MOVES, SEEN, Canals
from kron import Kron

CANALS, REACH, GAMMA, WIDTH = 64, 8, 0.96, 256


class Keeper(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(SEEN, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh())
        self.hand, self.worth = nn.Linear(WIDTH, MOVES), nn.Linear(WIDTH, 1)

    def forward(self, seen):
        h = self.body(seen)
        return self.hand(h), self.worth(h).squeeze(-1)


@torch.no_grad()
def play(keeper, canals):
    seen, moves, rewards = [], [], []
    for _ in range(REACH):
        now = canals.look()
        logits, _ = keeper(now)
        move = torch.multinomial(logits.softmax(1), 1).squeeze(1)
        seen.append(now)
        moves.append(move)
        rewards.append(canals.act(move))
    tail = keeper(canals.look())[1]
    goals = []
    for reward in reversed(rewards):
        tail = reward + GAMMA * tail
        goals.append(tail)
    return torch.cat(seen), torch.cat(moves), torch.cat(goals[::-1]), torch.stack(rewards).mean()


def learn(keeper, optimizer, seen, moves, goals):
    logits, worth = keeper(seen)
    policy = Categorical(logits=logits, validate_args=False)
    gain = goals - worth.detach()
    gain = (gain - gain.mean()) / (gain.std() + 1e-6)
    loss = -(policy.log_prob(moves) * gain).mean() + 0.5 * (goals - worth).square().mean() - 0.01 * policy.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(keeper.parameters(), 0.5)
    optimizer.step()
    return loss.detach()


if __name__ == "__main__":
    torch.manual_seed(19)
    keeper, canals = Keeper(), Canals(CANALS, 19)
    optimizer = Kron(keeper.parameters())
    steps, began = int(os.environ.get("PLANTED_STEPS", 900)), time.perf_counter()
    for step in range(1, steps + 1):
        *memory, reward = play(keeper, canals)
        loss = learn(keeper, optimizer, *memory)
        if step % 50 == 0:
            print(f"{step:5d}  reward {reward.item():+.4f}  loss {loss.item():.5f}", flush=True)
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.6f}")
