import json
import os
import sys
import time

import torch
from torch import nn

from ice import profiles
from lowrank import LowRankAdam


def load(path):
    with open(path) as file:
        config = json.load(file)
    config["steps"] = int(os.environ.get("PLANTED_STEPS", config["steps"]))
    if os.environ.get("PLANTED_FIX") == "1":
        config["optimizer"]["refresh"] = 100
    return config


def build(width):
    return nn.Sequential(
        nn.Linear(96, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 96)
    )


def main(path="config.json"):
    config = load(path)
    torch.manual_seed(config["seed"])
    torch.set_num_threads(1)
    times, depth = profiles()
    net = build(config["width"])
    optimizer = LowRankAdam(net.parameters(), **config["optimizer"])
    start, losses = time.perf_counter(), []
    for step in range(config["steps"]):
        pick = torch.randint(len(times), (config["batch"],))
        loss = nn.functional.mse_loss(net(times[pick]), depth[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if step % 50 == 49:
            print(f"{step + 1:5d}  mse {torch.stack(losses[-50:]).mean():.5f}")
    print(f"{config['steps']} steps in {time.perf_counter() - start:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
