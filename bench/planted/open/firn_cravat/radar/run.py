import itertools
import os
import tempfile
import time

import torch
from torch import nn

from .archive import catalogue, simulate
from .flights import CLASSES, loader


def picker(width=16):
    return nn.Sequential(
        nn.Conv2d(1, width, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d((4, 32)),
        nn.Flatten(),
        nn.Linear(width * 128, 96),
        nn.ReLU(),
        nn.Linear(96, CLASSES),
    )


def endless(batches):
    return itertools.chain.from_iterable(itertools.repeat(batches))


def main():
    torch.manual_seed(63)
    steps = int(os.environ.get("PLANTED_STEPS", 1200))
    with tempfile.TemporaryDirectory(prefix="firn") as folder:
        simulate(folder, 48, seed=4)
        batches = loader(catalogue(folder), tray=10, span=64, seed=6)
        net, criterion = picker(), nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
        began = time.perf_counter()
        for step, (cuts, goal) in enumerate(itertools.islice(endless(batches), steps), 1):
            loss = criterion(net(cuts), goal)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 150 == 0:
                print(f"step {step}, loss {loss.item():.4f}", flush=True)
        print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
