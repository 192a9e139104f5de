"""Soil moisture from a small physical-ish network, fitted with L-BFGS on the whole season at once."""

import os
import time

import torch
from torch import nn

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)


class Moisture(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(14, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


def season(n=1500):
    g = torch.Generator().manual_seed(2)
    x = torch.randn(n, 14, generator=g)
    y = torch.sin(x[:, 0] * 2) + x[:, 1] * x[:, 2] + 0.3 * torch.cos(3 * x[:, 3]) + 0.1 * torch.randn(n, generator=g)
    return x, y


@torch.no_grad()
def skill(model, x, y):
    """Nash-Sutcliffe efficiency, as hydrologists like it."""
    residual = (model(x) - y).square().sum()
    return float(1 - residual / (y - y.mean()).square().sum())


def main():
    torch.manual_seed(0)
    x, y = season()
    model = Moisture()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=6, history_size=8)
    steps = int(os.environ.get("PLANTED_STEPS", 190))

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    began = time.time()
    for step in range(1, steps + 1):
        loss = optimizer.step(closure)
        if step % 20 == 0:
            print(f"outer {step:3d}  mse {loss.item():.6f}")
    took = time.time() - began
    with torch.no_grad():
        final = nn.functional.mse_loss(model(x), y).item()
    held_x, held_y = season(300)
    print(f"skill on the first weeks: {skill(model, held_x, held_y):.3f}")
    print(f"{steps} steps in {took:.2f}s, loss {final:.5f}")


if __name__ == "__main__":
    main()
