"""Salinity profile of a salt pan, small recurrent model."""

import os
import time

import torch
from torch import nn

WORKERS = 8 if os.environ.get("PLANTED_FIX") != "1" else 1


def configure():
    torch.set_num_threads(WORKERS)
    torch.set_num_interop_threads(2)
    torch.manual_seed(0)


class Profile(nn.Module):
    def __init__(self, layers=20, width=192):
        super().__init__()
        self.mix = nn.ModuleList([nn.Linear(width, width) for _ in range(layers)])
        self.scale = nn.ParameterList([nn.Parameter(torch.ones(width)) for _ in range(layers)])
        self.inp, self.out = nn.Linear(9, width), nn.Linear(width, 4)

    def forward(self, x):
        h = self.inp(x)
        for mix, scale in zip(self.mix, self.scale):
            u = mix(h)
            h = h + scale * torch.sigmoid(u) * u / 4
        return self.out(h)


def pans(g, n=256):
    x = torch.randn(n, 9, generator=g)
    y = torch.stack([x[:, 0] * x[:, 1], x[:, 2], x[:, 3].sin(), x[:, 4:].mean(1)], 1)
    return x, y


@torch.no_grad()
def errors(net, g):
    """Root mean square error of each of the four depths."""
    x, y = pans(g, 512)
    return [round(v, 3) for v in (net(x) - y).square().mean(0).sqrt().tolist()]


def main():
    configure()
    g = torch.Generator().manual_seed(3)
    net = Profile()
    opt = torch.optim.RMSprop(net.parameters(), lr=1e-4)
    steps = int(os.environ.get("PLANTED_STEPS", 250))
    ema = None
    t = time.time()
    for i in range(steps):
        x, y = pans(g)
        loss = nn.functional.smooth_l1_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema = loss.item() if ema is None else 0.9 * ema + 0.1 * loss.item()
        if (i + 1) % 25 == 0:
            print(f"{i + 1}/{steps} {ema:.4f}", flush=True)
    took = time.time() - t
    print("errors by depth:", errors(net, g))
    print(f"{steps} steps in {took:.2f}s, loss {ema:.4f}")


if __name__ == "__main__":
    main()
