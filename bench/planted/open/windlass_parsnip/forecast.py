import argparse
import os
import time

import torch

from canal import Flight
from lockbook import Lockbook
from pounds import Pounds


def arguments():
    parser = argparse.ArgumentParser(description="Levels of a flight of locks, a day and a half ahead")
    parser.add_argument("--locks", type=int, default=29)
    parser.add_argument("--hours", type=int, default=9000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--batch", type=int, default=48)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 1000)))
    parser.add_argument("--seed", type=int, default=1793)
    return parser.parse_args()


def main(args):
    torch.manual_seed(args.seed)
    flight = Flight(args.locks, args.hours, args.seed)
    net, book = Pounds(args.locks, args.width, args.rounds), Lockbook(args.locks)
    optimizer = torch.optim.AdamW(net.parameters(), args.lr, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2 * args.lr, total_steps=max(args.steps, 10))
    began = time.perf_counter()
    for step in range(1, args.steps + 1):
        seen, came, week = flight.windows(args.batch)
        told = net(seen, week)
        loss = torch.nn.functional.l1_loss(told, came)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        book.enter(told, came, week)
        if step % 100 == 0:
            print(f"{step}: {loss.item():.4f}", flush=True)
    for share, lock, hour in book.trouble():
        print(f"lock {lock}, day {hour // 24} at {hour % 24}: off by a hand in {100 * share:.0f} % of the hours")
    print(f"{args.steps} steps in {time.perf_counter() - began:.2f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main(arguments())
