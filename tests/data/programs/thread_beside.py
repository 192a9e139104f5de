"""A loop of small operators beside a thread: one that runs Python, or one that computes in C and lets go of Python's lock."""

import hashlib
import sys
import threading
import time

import torch
from torch import nn

torch.set_num_threads(1)
ENDS = time.monotonic() + float(sys.argv[2])
BLOCK = bytes(1 << 22)


def letters():
    while True:
        sum(len(str(number)) for number in range(5000))


def digests():
    while True:
        hashlib.sha256(BLOCK).digest()


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    threading.Thread(target=globals()[sys.argv[1]], name="clerk", daemon=True).start()
    while time.monotonic() < ENDS:
        x = torch.randn(64, 64)
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
