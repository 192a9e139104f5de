"""Double DQN. A step is one update; the newt moves once for each."""

import argparse
import os
import time
from collections import deque

import numpy as np
import torch

from agent import Agent
from memory import Memory
from pond import Pond


def options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--updates", type=int, default=2400)
    p.add_argument("--warmup", type=int, default=1000)
    p.add_argument("--batch", type=int, default=512)
    p.add_argument("--memory", type=int, default=20000)
    p.add_argument("--lr", type=float, default=5e-4)
    p.add_argument("--gamma", type=float, default=0.97)
    p.add_argument("--tau", type=float, default=0.01)
    p.add_argument("--seed", type=int, default=36)
    return p.parse_args()


def main() -> None:
    torch.set_num_threads(1)
    args = options()
    torch.manual_seed(args.seed)
    env, rng = Pond(args.seed), np.random.default_rng(args.seed)
    memory = Memory(args.memory, 2 * Pond.rays, args.seed)
    agent = Agent(2 * Pond.rays, Pond.actions, args.lr, args.gamma, args.tau)
    limit = int(os.environ.get("PLANTED_STEPS", args.updates))
    state, catch, recent = env.reset(), 0.0, deque(maxlen=20)
    step, value, begun = -args.warmup, float("nan"), time.perf_counter()
    while step < limit:
        if step == 0:
            begun = time.perf_counter()
        explore = max(0.05, 1.0 - max(step, 0) / 800)
        action = int(rng.integers(Pond.actions)) if step < 0 or rng.random() < explore else agent.act(state)
        after, reward, end = env.step(action)
        memory.add(state, action, reward, after, end)
        state, catch = after, catch + reward
        if end:
            recent.append(catch)
            state, catch = env.reset(), 0.0
        step += 1
        if step > 0:
            value = agent.learn(*memory.sample(args.batch))
            print(f"update {step} td {value:.5f} catch {np.mean(recent) if recent else 0.0:.2f}", flush=True)
    print(f"{step} steps in {time.perf_counter() - begun:.2f}s, loss {value:.6f}")


if __name__ == "__main__":
    main()
