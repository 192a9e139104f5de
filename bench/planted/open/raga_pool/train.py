"""Learns the tonic of a raga from pitch contours that are drawn for each batch."""

import math
import multiprocessing
import os
import random
import time

import torch
from torch import nn

REUSE = os.environ.get("PLANTED_FIX") == "1"
STEPS = int(os.environ.get("PLANTED_STEPS", 200))
KEPT = []


def contour(seed):
    rng = random.Random(seed)
    tonic, bend = rng.randrange(12), rng.uniform(0.01, 0.08)
    return [math.sin(bend * t) + tonic / 12 + rng.gauss(0, 0.03) for t in range(160)], tonic


def draw(seeds):
    if REUSE:
        if not KEPT:
            KEPT.append(multiprocessing.get_context("fork").Pool(2))
        return KEPT[0].map(contour, seeds, chunksize=8)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(contour, seeds, chunksize=8)


class TonicNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(160, 256), nn.ELU(), nn.Linear(256, 12))

    def forward(self, x):
        return self.body(x)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(4)
    net = TonicNet()
    optim = torch.optim.AdamW(net.parameters(), lr=1e-3)
    start = time.time()
    for step in range(STEPS):
        rows = draw(range(step * 16, step * 16 + 16))
        x = torch.tensor([pitches for pitches, _ in rows])
        y = torch.tensor([tonic for _, tonic in rows])
        loss = nn.functional.cross_entropy(net(x), y)
        optim.zero_grad()
        loss.backward()
        optim.step()
        if step % 40 == 0:
            print(step, f"{loss.item():.3f}")
    print(f"{STEPS} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
    for pool in KEPT:
        pool.terminate()


if __name__ == "__main__":
    main()
