"""Rock types from well logs; start it with run.sh."""

import argparse
import os
import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from rocknet import RockNet
from stream import LogStream
from upkeep import Upkeep
from wells import ROCKS, Registry


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--wells", type=int, default=200)
    parser.add_argument("--intervals", type=int, default=300)
    parser.add_argument("--window", type=int, default=64)
    parser.add_argument("--width", type=int, default=48)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=53)
    parser.add_argument("--lazy-upkeep", action="store_true", default=os.environ.get("PLANTED_FIX") == "1")
    chosen = parser.parse_args()
    chosen.updates = int(os.environ.get("PLANTED_STEPS", chosen.updates))
    return chosen


def update(model, optimizer, logs, rocks):
    loss = F.cross_entropy(model(logs), rocks)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    chosen = options()
    torch.manual_seed(chosen.seed)
    registry = Registry(chosen.wells, chosen.intervals, chosen.seed)
    loader = DataLoader(LogStream(registry, chosen.window, chosen.seed), batch_size=chosen.batch)
    model = RockNet(chosen.width, len(ROCKS))
    optimizer = torch.optim.NAdam(model.parameters(), lr=chosen.lr)
    upkeep = Upkeep(eager=not chosen.lazy_upkeep)
    value, began = float("nan"), time.time()
    for number, (logs, rocks) in enumerate(loader, 1):
        value = update(model, optimizer, logs, rocks)
        upkeep.after_update(number)
        if number % 20 == 0:
            print(f"update {number} loss {value:.4f}, {upkeep.report()}")
        if number >= chosen.updates:
            break
    print(f"{number} steps in {time.time() - began:.3f}s, loss {value:.6f}")


if __name__ == "__main__":
    main()
