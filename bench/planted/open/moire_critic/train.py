import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ROUNDS = int(os.environ.get("PLANTED_STEPS", 150))
CRITICS = 3


def generator():
    return nn.Sequential(
        nn.Linear(24, 64 * 49),
        nn.ReLU(),
        nn.Unflatten(1, (64, 7, 7)),
        nn.ConvTranspose2d(64, 32, 4, 2, 1),
        nn.ReLU(),
        nn.ConvTranspose2d(32, 1, 4, 2, 1),
    )


def critic():
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, 2, 2), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 5, 2, 2), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(64 * 49, 1)
    )


def penalty(d, real, fake):
    mix = torch.rand(len(real), 1, 1, 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    (slope,) = torch.autograd.grad(d(between).sum(), between, create_graph=True)
    return (slope.flatten(1).norm(dim=1) - 1).square().mean()


def patterns(n=1024):
    t = torch.linspace(0, 20, 28)
    a, b = torch.rand(2, n, 1, 1) * 2
    return TensorDataset(torch.sin(a * t[:, None] + b * t)[:, None])


def forever(loader):
    while True:
        for (real,) in loader:
            yield real


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(14)
    g, d = generator(), critic()
    average = generator()
    average.load_state_dict(g.state_dict())
    opt_g, opt_d = (torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.0, 0.9)) for net in (g, d))
    data = forever(DataLoader(patterns(), batch_size=16, shuffle=True, drop_last=True))
    began = time.time()
    for n in range(1, ROUNDS + 1):
        for _ in range(CRITICS):
            real = next(data)
            fake = g(torch.randn(len(real), 24)).detach()
            loss_d = d(fake).mean() - d(real).mean() + 10 * penalty(d, real, fake)
            opt_d.zero_grad()
            loss_d.backward()
            opt_d.step()
        loss_g = -d(g(torch.randn(16, 24))).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        with torch.no_grad():
            for p, q in zip(average.parameters(), g.parameters()):
                p.lerp_(q, 0.01)
        if n % 5 == 0:
            print(n, f"{loss_d.item():.3f} {loss_g.item():.3f}")
    print(f"{ROUNDS} steps in {time.time() - began:.2f}s, loss {loss_d.item():.6f}")
