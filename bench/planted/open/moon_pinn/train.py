"""Temperature under the lunar surface from the heat equation; no data, no optimizer object for the conductivity."""

import os
import time

import torch
from torch import nn

STEPS = int(os.environ.get("PLANTED_STEPS", 220))


class Field(nn.Module):
    def __init__(self, width=160):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )
        self.log_k = nn.Parameter(torch.zeros(()))

    def forward(self, depth, moment):
        return self.layers(torch.stack([depth, moment], 1)).squeeze(1)


def residual(field, depth, moment):
    u = field(depth, moment)
    u_z, u_t = torch.autograd.grad(u.sum(), (depth, moment), create_graph=True)
    (u_zz,) = torch.autograd.grad(u_z.sum(), depth, create_graph=True)
    return u_t - field.log_k.exp() * u_zz


def main():
    torch.set_num_threads(1)
    torch.manual_seed(12)
    field = Field()
    weights = list(field.parameters())
    momentum = [torch.zeros_like(w) for w in weights]
    began = time.time()
    for step in range(STEPS):
        depth, moment = torch.rand(2, 1200).requires_grad_().unbind()
        surface = field(torch.zeros(200), torch.linspace(0, 1, 200)) - torch.sin(6.28 * torch.linspace(0, 1, 200))
        loss = residual(field, depth, moment).square().mean() + 10 * surface.square().mean()
        grads = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for w, m, g in zip(weights, momentum, grads):
                m.mul_(0.9).add_(g)
                w.sub_(1e-4 * m)
        if step % 10 == 0:
            print(f"{step} {loss.item():.5f} k {field.log_k.exp().item():.4f}")
    print(f"{STEPS} steps in {time.time() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
