import argparse
import os
import time

import torch
from torch import nn


class RowModel(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.canopy = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.LayerNorm(hidden))
        self.hidden = nn.ModuleList([nn.Linear(hidden, hidden) for _ in range(8)])
        self.norms = nn.ModuleList([nn.LayerNorm(hidden) for _ in range(8)])
        self.kilos = nn.Linear(hidden, 1)

    def forward(self, x):
        h = self.canopy(x)
        for lin, norm in zip(self.hidden, self.norms):
            h = h + torch.nn.functional.gelu(lin(norm(h)))
        return self.kilos(h).squeeze(1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rows", type=int, default=1000)
    p.add_argument("--hidden", type=int, default=128)
    p.add_argument("--batch", type=int, default=64)
    a = p.parse_args()
    torch.manual_seed(0)
    x = torch.randn(a.rows, 64)
    y = x[:, :6].sum(1) + 0.1 * torch.randn(a.rows)
    model = RowModel(64, a.hidden)
    opt = torch.optim.Adam(model.parameters(), lr=5e-4)
    steps = int(os.environ.get("PLANTED_STEPS", 250))
    ema = 0.0
    t0 = time.time()
    for i in range(steps):
        k = torch.randint(0, a.rows, (a.batch,))
        loss = nn.functional.mse_loss(model(x[k]), y[k])
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema = loss.item() if i == 0 else 0.9 * ema + 0.1 * loss.item()
        if i % 25 == 24:
            print(i + 1, "mse", round(ema, 4), flush=True)
    print(f"{steps} steps in {time.time() - t0:.2f}s, loss {ema:.4f}")


if __name__ == "__main__":
    main()
