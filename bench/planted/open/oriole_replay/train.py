"""Teach the oriole."""

import argparse
import logging
import os
import random
import time

import torch
from agent import Agent
from housekeeping import BUDGET
from orchard import ACTIONS, Orchard
from replay import Memory

log = logging.getLogger("oriole")


def flights(memory: Memory, count: int, seed: int) -> None:
    """Random flights to start from."""
    world, rng = Orchard(12, seed), random.Random(seed)
    state = world.reset()
    for _ in range(count):
        action = rng.randrange(len(ACTIONS))
        following, reward, done = world.act(action)
        memory.add(state, action, reward, following, done)
        state = world.reset() if done else following


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flights", type=int, default=12_000)
    parser.add_argument("--capacity", type=int, default=200_000)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--moves", type=int, default=4, help="moves of the bird for each update")
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "650")))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(41)
    world, rng = Orchard(12, 41), random.Random(41)
    memory = Memory(options.capacity, 41)
    flights(memory, options.flights, 42)
    state = world.reset()
    agent = Agent(len(state), options.width, len(ACTIONS), lr=5e-4, discount=0.97, follow=0.01)

    began, loss, gathered = time.perf_counter(), 0.0, 0.0
    for step in range(1, options.steps + 1):
        curiosity = max(0.05, 1.0 - step / 400)
        for _ in range(options.moves):
            action = rng.randrange(len(ACTIONS)) if rng.random() < curiosity else agent.choose(state)
            following, reward, done = world.act(action)
            memory.add(state, action, reward, following, done)
            gathered += reward
            state = world.reset() if done else following
        loss = agent.learn(memory.sample(options.batch_size))
        if step % 20 == 0:
            log.info("step %d loss %.4f, reward %.2f, memory %d", step, loss, gathered, len(memory))
            gathered = 0.0
    log.info("at most %.0f MB", BUDGET.highest)
    print(f"{options.steps} steps in {time.perf_counter() - began:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
