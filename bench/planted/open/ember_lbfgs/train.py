"""Fits a layered fire-spread model to one burnt map, full batch."""

import os
import time

import torch
from torch import nn

MEMORY = 8 if os.environ.get("PLANTED_FIX") == "1" else 150
OUTER = int(os.environ.get("PLANTED_STEPS", 500))


class Spread(nn.Module):
    def __init__(self, cells=220):
        super().__init__()
        self.fuel = nn.Parameter(torch.rand(cells, cells) * 0.1)
        self.wind = nn.Parameter(torch.zeros(2, cells, cells))

    def forward(self, lit):
        blown = lit + self.wind[0] * lit.roll(1, 0) + self.wind[1] * lit.roll(1, 1)
        return torch.sigmoid(4 * blown * self.fuel - 2 * (1 - lit))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(36)
    lit = torch.rand(220, 220)
    burnt = (torch.nn.functional.avg_pool2d(lit[None], 9, 1, 4)[0] > 0.5).float() * 0.8 + 0.1
    model = Spread()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.3, max_iter=2, history_size=MEMORY, tolerance_grad=0, tolerance_change=0)

    def closure():
        optimizer.zero_grad()
        loss = (model(lit) - burnt).square().sum()
        loss.backward()
        return loss

    began = time.time()
    for _ in range(OUTER):
        loss = optimizer.step(closure)
    print(f"{OUTER} steps in {time.time() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
