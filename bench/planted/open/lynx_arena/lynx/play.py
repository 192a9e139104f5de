import os
import time

import numpy as np
import torch

from .agent import Agent
from .arena import Arena
from .housekeeping import Housekeeping
from .memory import Replay, Transition


class Session:
    def __init__(self, seed=90, warm=9_000, batch=256):
        torch.manual_seed(seed)
        self.rng = np.random.default_rng(seed)
        self.arena, self.agent = Arena(seed), Agent(12, Arena.actions)
        self.memory, self.keeper, self.batch = Replay(100_000, seed), Housekeeping(), batch
        self.observation = self.arena.reset()
        for _ in range(warm):
            self.move(explore=1.0)

    def move(self, explore):
        action = self.agent.act(self.observation, explore, self.rng)
        after, reward, done = self.arena.step(action)
        info = {"age": self.arena.age, "place": [self.arena.me, self.arena.prey]}
        self.memory.push(Transition(self.observation, action, reward, after, done, info))
        self.observation = self.arena.reset() if done else after

    def run(self, updates):
        start = time.time()
        for n in range(1, updates + 1):
            for _ in range(4):
                self.move(explore=0.2)
            loss = self.agent.learn(self.memory.sample(self.batch))
            self.keeper.after_update(n)
            if n % 100 == 0:
                self.agent.sync()
                print(f"update {n}: {loss:.5f}")
        print(f"{updates} steps in {time.time() - start:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    Session().run(int(os.environ.get("PLANTED_STEPS", 260)))
