"""Two networks clean up old records: one removes hiss, one removes clicks."""

import os
import tempfile
import time

import torch
from restore import PERIOD, snapshot
from torch import nn

FRAMES = 512


def bands(width):
    return nn.Sequential(nn.Linear(FRAMES, width), nn.Mish(), nn.Linear(width, FRAMES))


def excerpts(n, g):
    tone = torch.sin(torch.linspace(0, 300, FRAMES) * torch.rand(n, 1, generator=g))
    return tone, tone + 0.2 * torch.randn(n, FRAMES, generator=g), (torch.rand(n, FRAMES, generator=g) > 0.98).float()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(33)
    g = torch.Generator().manual_seed(6)
    steps = int(os.environ.get("PLANTED_STEPS", 320))
    model = nn.ModuleDict({"hiss": bands(224), "clicks": bands(224)})
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        for step in range(1, steps + 1):
            tone, hissing, clicks = excerpts(64, g)
            cleaned = model["hiss"](hissing) - clicks * model["clicks"](hissing + clicks)
            loss = (cleaned - tone).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % PERIOD == 0:
                snapshot(os.path.join(folder, "last.pkl.gz"), model, optimizer, step)
        print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
