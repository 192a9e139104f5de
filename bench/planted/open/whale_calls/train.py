import os
import time

import torch
from model import Calls
from torch import nn


def get_batch(g, size=8):
    kind = torch.randint(0, 4, (size,), generator=g)
    t = torch.arange(8000) / 4000
    pitch = 60 + 45 * kind[:, None] + 10 * torch.rand(size, 1, generator=g)
    return torch.sin(6.28 * pitch * t) + 0.3 * torch.randn(size, 8000, generator=g), kind


def main():
    torch.set_num_threads(1)
    torch.manual_seed(2)
    model, g = Calls(), torch.Generator().manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    steps, start = int(os.environ.get("PLANTED_STEPS", 1500)), time.time()
    for step in range(steps):
        wave, kind = get_batch(g)
        loss = nn.functional.cross_entropy(model(wave), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
