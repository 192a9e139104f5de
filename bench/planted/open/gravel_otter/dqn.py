"""Double DQN on the river."""

import argparse
import os
import time

import torch
from agent import Agent
from replay import Replay
from river import MOVES, River


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=12)
    parser.add_argument("--capacity", type=int, default=20_000)
    parser.add_argument("--warm", type=int, default=8_000, help="random moves before learning")
    parser.add_argument("--moves-per-update", type=int, default=4)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--seed", type=int, default=30)
    parser.add_argument("--updates", type=int, default=int(os.environ.get("PLANTED_STEPS", 400)))
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    river, replay = River(args.size, args.seed), Replay(args.capacity, args.seed)
    state = river.reset()
    agent = Agent(len(state), args.width, lr=5e-4, gamma=0.95, seed=args.seed)
    for _ in range(args.warm):
        action = agent.rng.randrange(len(MOVES))
        after, reward, over = river.step(action)
        replay.push(state, action, reward, after, over)
        state = river.reset() if over else after

    start, caught = time.perf_counter(), 0
    for update in range(1, args.updates + 1):
        epsilon = max(0.05, 1 - update / 200)
        for _ in range(args.moves_per_update):
            action = agent.act(state, epsilon)
            after, reward, over = river.step(action)
            replay.push(state, action, reward, after, over)
            caught += reward == 1.0
            state = river.reset() if over else after
        loss = agent.learn(replay, args.batch)
        if update % 50 == 0:
            print(f"update {update} loss {loss.item():.5f} caught {caught}", flush=True)
    print(f"{args.updates} steps in {time.perf_counter() - start:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
