import os
import time
import tomllib

import torch
from torch.nn import functional as F

from bells import Tower
from ear import Ear


def same_bell(a, b, heat):
    """Of all strikes in the other half, which is of the same bell?"""
    likeness = a @ b.t() / heat
    answer = torch.arange(len(a))
    return (F.cross_entropy(likeness, answer) + F.cross_entropy(likeness.t(), answer)) / 2


def ring(conf):
    torch.manual_seed(conf["seed"])
    tower = Tower(**conf["bells"], generator=torch.Generator().manual_seed(conf["seed"]))
    ear = Ear(**conf["ear"])
    train = conf["train"]
    optimizer = torch.optim.NAdam(ear.parameters(), train["rate"])
    steps = int(os.environ.get("PLANTED_STEPS", conf["steps"]))
    began = time.perf_counter()
    for step in range(1, steps + 1):
        first, second = tower.pair(train["batch"])
        a, b = ear(torch.cat([first, second])).chunk(2)
        loss = same_bell(a, b, train["heat"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"{step:4d} strikes of {train['batch']} bells: {loss.item():.4f}", flush=True)
    print(f"{steps} steps in {time.perf_counter() - began:.2f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    with open("foundry.toml", "rb") as file:
        ring(tomllib.load(file))
