"""Fits a sine network to a moonscape, so that the rover can ask for the height anywhere."""

import math
import os
import time

import torch
from torch import nn

from crater import height, plain
from lion import Lion

WIDTH, DEPTH, POINTS, OMEGA = 192, 4, 3072, 24.0


class Wave(nn.Module):
    def __init__(self, inputs, outputs, first=False):
        super().__init__()
        self.line = nn.Linear(inputs, outputs)
        bound = 1 / inputs if first else math.sqrt(6 / inputs) / OMEGA
        nn.init.uniform_(self.line.weight, -bound, bound)

    def forward(self, x):
        return torch.sin(OMEGA * self.line(x))


def moon():
    waves = [Wave(2, WIDTH, first=True)] + [Wave(WIDTH, WIDTH) for _ in range(DEPTH - 1)]
    return nn.Sequential(*waves, nn.Linear(WIDTH, 1))


def main():
    torch.manual_seed(1969)
    craters, net = plain(11), moon()
    optimizer = Lion(net.parameters(), lr=1e-4)
    steps = int(os.environ.get("PLANTED_STEPS", 600))
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    began = time.perf_counter()
    for step in range(1, steps + 1):
        at = torch.rand(POINTS, 2) * 2 - 1
        loss = nn.functional.mse_loss(net(at), height(at, craters))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        slower.step()
        if step % 100 == 0:
            print(f"{step} rmse {loss.sqrt().item():.4f} km", flush=True)
    torch.save(net.state_dict(), "moon.pt")
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
