import math
import os
import time

import torch
from agent import Agent, Transition


class Pole:
    """A pole on a cart, integrated with Euler steps."""

    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.state = [self.rng.uniform(-0.05, 0.05) for _ in range(4)]
        return list(self.state)

    def step(self, action):
        x, v, angle, spin = self.state
        force = 10.0 if action else -10.0
        temp = (force + 0.05 * spin * spin * math.sin(angle)) / 1.1
        turn = (9.8 * math.sin(angle) - math.cos(angle) * temp) / (0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
        self.state = [x + 0.02 * v, v + 0.02 * temp, angle + 0.02 * spin, spin + 0.02 * turn]
        done = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21
        return list(self.state), 1.0, done


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    agent = Agent()
    pole = Pole(agent.rng)
    state = pole.reset()
    for _ in range(20_000):
        action = agent.rng.randrange(2)
        after, reward, done = pole.step(action)
        agent.memory.append(Transition(state, action, reward, after, done))
        state = pole.reset() if done else after
    updates, start = int(os.environ.get("PLANTED_STEPS", 500)), time.time()
    for n in range(updates):
        action = agent.act(state)
        after, reward, done = pole.step(action)
        agent.memory.append(Transition(state, action, reward, after, done))
        state = pole.reset() if done else after
        loss = agent.learn()
        if n % 50 == 0:
            agent.sync()
    print(f"{updates} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
