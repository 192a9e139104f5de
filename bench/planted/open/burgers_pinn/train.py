import math
import os
import time

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(1)
CHECK = os.environ.get("PLANTED_FIX") != "1"
STEPS = int(os.environ.get("PLANTED_STEPS", 1500))

torch.autograd.set_detect_anomaly(CHECK)

net = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
params = list(net.parameters())
velocity = [torch.zeros_like(p) for p in params]
nu = 0.01 / math.pi


def residual(tx):
    u = net(tx)
    (du,) = torch.autograd.grad(u.sum(), tx, create_graph=True)
    u_t, u_x = du[:, :1], du[:, 1:]
    (d2u,) = torch.autograd.grad(u_x.sum(), tx, create_graph=True)
    return u_t + u * u_x - nu * d2u[:, 1:]


def sample(n, g):
    inside = torch.rand(n, 2, generator=g) * torch.tensor([1.0, 2.0]) - torch.tensor([0.0, 1.0])
    initial = torch.cat([torch.zeros(n // 4, 1), torch.rand(n // 4, 1, generator=g) * 2 - 1], 1)
    return inside.requires_grad_(), initial


g = torch.Generator().manual_seed(4)
start = time.time()
for step in range(1, STEPS + 1):
    inside, initial = sample(128, g)
    loss = residual(inside).square().mean() + (net(initial) + torch.sin(math.pi * initial[:, 1:])).square().mean()
    grads = torch.autograd.grad(loss, params)
    with torch.no_grad():
        for p, v, d in zip(params, velocity, grads, strict=True):
            v.mul_(0.9).add_(d)
            p.sub_(v, alpha=1e-3)
    if step % 200 == 0:
        print(step, loss.item(), flush=True)
print(f"{STEPS} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
