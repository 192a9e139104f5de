import os
import time

import torch
from operators import residual_loss
from torch import nn


def growth(g, n):
    site = torch.rand(n, 6, generator=g)
    return site, (site[:, 0] * site[:, 1]).sqrt() + 0.05 * torch.randn(n, generator=g)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(44)
    g = torch.Generator().manual_seed(9)
    steps = int(os.environ.get("PLANTED_STEPS", 1000))
    net = nn.Sequential(nn.Linear(6, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1))
    weights = list(net.parameters())
    velocity = [torch.zeros_like(w) for w in weights]
    start = time.time()
    for _step in range(steps):
        site, grown = growth(g, 256)
        loss = residual_loss(net(site).squeeze(1) - grown)
        for w, v, d in zip(weights, velocity, torch.autograd.grad(loss, weights)):
            v.mul_(0.9).add_(d)
            w.data.sub_(0.05 * v)
    print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
