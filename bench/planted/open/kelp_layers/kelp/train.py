import os
import time

import torch
from torch import nn

from .model import deep_net
from .optim import LayerRates


def batch(g, size=16):
    depth = torch.rand(size, 24, generator=g)
    return depth, (depth[:, :6].sum(1) * depth[:, 6]).unsqueeze(1)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(19)
    steps = int(os.environ.get("PLANTED_STEPS", 300))
    model = deep_net(24)
    rates = LayerRates(model, lr=2e-3)
    g = torch.Generator().manual_seed(1)
    start = time.time()
    for step in range(steps):
        x, y = batch(g)
        loss = nn.functional.mse_loss(model(x), y)
        rates.zero_grad()
        loss.backward()
        rates.step()
        if step % 100 == 0:
            print(step, round(loss.item(), 4))
    print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
