"""Double DQN with prioritised replay."""

import copy
import os
import time

import numpy as np
import torch
from torch import nn

from desert import MOVES, OBS, Plain
from keeper import Keeper
from memory import Memory

CAPACITY, BATCH, ACTS_PER_STEP = 160_000, 256, 4


class Duel(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(OBS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.value, self.gain = nn.Linear(width, 1), nn.Linear(width, MOVES)

    def forward(self, obs):
        h = self.body(obs)
        gain = self.gain(h)
        return self.value(h) + gain - gain.mean(-1, keepdim=True)


class Hunter:
    def __init__(self):
        self.live = Duel()
        self.slow = copy.deepcopy(self.live).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.live.parameters(), 3e-4)
        self.rng = np.random.default_rng(9)

    @torch.no_grad()
    def act(self, obs, luck):
        if self.rng.random() < luck:
            return int(self.rng.integers(MOVES))
        return int(self.live(torch.from_numpy(obs)).argmax())

    def learn(self, memory, gamma=0.97):
        at, obs, move, reward, after, done = memory.sample(BATCH, self.rng)
        with torch.no_grad():
            choice = self.live(after).argmax(1, keepdim=True)
            goal = reward + gamma * (1 - done) * self.slow(after).gather(1, choice).squeeze(1)
        error = self.live(obs).gather(1, move[:, None]).squeeze(1) - goal
        loss = nn.functional.huber_loss(error, torch.zeros_like(error))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        memory.rate(at, error.detach().numpy())
        torch._foreach_lerp_(list(self.slow.parameters()), list(self.live.parameters()), 0.005)
        return loss.item()


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    plain, hunter, memory = Plain(3), Hunter(), Memory(CAPACITY, OBS)
    parts = {"live": hunter.live, "slow": hunter.slow, "optimizer": hunter.optimizer}
    if os.environ.get("PLANTED_FIX") != "1":
        parts["memory"] = memory
    keeper = Keeper("kept", parts, every=8)
    obs = plain.reset()

    def play(luck):
        nonlocal obs
        move = hunter.act(obs, luck)
        after, reward, done = plain.step(move)
        memory.add(obs, move, reward, after, done)
        obs = plain.reset() if done else after

    for _ in range(1500):
        play(1.0)
    steps, began = int(os.environ.get("PLANTED_STEPS", 9000)), time.perf_counter()
    for step in range(1, steps + 1):
        for _ in range(ACTS_PER_STEP):
            play(max(0.05, 1 - step / 2000))
        loss = hunter.learn(memory)
        keeper.after_step(step)
        if step % 20 == 0:
            print(
                f"{step}: loss {loss:.5f}, memory {memory.count}, mean reward {memory.reward[: memory.count].mean().item():.4f}", flush=True
            )
    print(f"{steps} steps in {time.perf_counter() - began:.3f}s, loss {loss:.5f}")


if __name__ == "__main__":
    main()
