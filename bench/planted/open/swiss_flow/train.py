import os
import time

import torch
from torch import nn
from wasserstein import distance


def roll(n, g):
    t = 4.7 * (1 + 2 * torch.rand(n, generator=g))
    return torch.stack([t * t.cos(), 21 * torch.rand(n, generator=g), t * t.sin()], 1) / 10


def flow():
    return nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 3))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(23)
    g = torch.Generator().manual_seed(23)
    steps = int(os.environ.get("PLANTED_STEPS", 220))
    net = flow()
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    start = time.time()
    for step in range(steps):
        noise = torch.randn(1500, 3, generator=g)
        slices = nn.functional.normalize(torch.randn(3, 48, generator=g), dim=0)
        loss = distance(noise + net(noise), roll(1500, g), slices)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(step, f"{loss.item():.4f}")
    print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
