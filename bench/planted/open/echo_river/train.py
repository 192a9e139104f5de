"""Forecasts the level of a river with an echo-state network and a trained readout."""

import os
import time

import torch
from reservoir import Reservoir
from torch import nn

STEPS = int(os.environ.get("PLANTED_STEPS", 100))


def gauges(n, g):
    phase = torch.rand(n, 1, 3, generator=g) * 6.28
    t = torch.arange(4)[None, :, None] * 0.4
    levels = torch.sin(t + phase)
    return levels[:, :3], levels[:, 3]


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(8)
    g = torch.Generator().manual_seed(8)
    reservoir = Reservoir(1600, inputs=3)
    readout = nn.Sequential(nn.Linear(1600, 64), nn.Tanh(), nn.Linear(64, 3))
    optimizer = torch.optim.Adam(readout.parameters(), lr=1e-3)
    start = time.time()
    for step in range(STEPS):
        past, level = gauges(16, g)
        loss = nn.functional.mse_loss(readout(reservoir.states(past)), level)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{STEPS} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
