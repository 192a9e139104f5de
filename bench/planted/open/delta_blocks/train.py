"""Sediment transport on a grid: a deep residual stack of convolutions."""

import os
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

STEPS = int(os.environ.get("PLANTED_STEPS", 220))
LEAN = os.environ.get("PLANTED_FIX") != "1"


class Cell(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.GELU(), nn.Conv2d(width, width, 1), nn.Tanh())

    def forward(self, x):
        return x + (checkpoint(self.inner, x, use_reentrant=False) if LEAN else self.inner(x))


class Transport(nn.Module):
    def __init__(self, width=12, depth=8):
        super().__init__()
        self.lift = nn.Conv2d(2, width, 1)
        self.cells = nn.Sequential(*[Cell(width) for _ in range(depth)])
        self.drop = nn.Conv2d(width, 1, 1)

    def forward(self, bed):
        x = self.lift(bed)
        if LEAN:
            x = checkpoint_sequential(self.cells, 2, x, use_reentrant=False)
        else:
            x = self.cells(x)
        return self.drop(x)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(37)
    bed = torch.rand(64, 2, 32, 32)
    moved = bed[:, :1] * bed[:, 1:].roll(1, 3)
    model = Transport()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    began = time.time()
    for step in range(STEPS):
        here = torch.arange(step * 8, step * 8 + 8) % 64
        loss = nn.functional.mse_loss(model(bed[here]), moved[here])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{STEPS} steps in {time.time() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
