"""Burgers' equation on [-1, 1] × [0, 1]: residual, start and walls."""

import math

import torch

VISCOSITY = 0.01 / math.pi


def residual(net, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    x, t = x.requires_grad_(True), t.requires_grad_(True)
    u = net(x, t)
    u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
    return u_t + u * u_x - VISCOSITY * u_xx


class Points:
    """Fresh points for each step, from one generator."""

    def __init__(self, inside: int, edge: int, seed: int):
        self.inside, self.edge = inside, edge
        self.g = torch.Generator().manual_seed(seed)

    def collocation(self) -> tuple:
        xt = torch.rand(self.inside, 2, generator=self.g)
        return xt[:, :1] * 2 - 1, xt[:, 1:].clone()

    def boundary(self) -> tuple:
        s = torch.rand(self.edge, 3, generator=self.g)
        x0 = s[:, :1] * 2 - 1
        wall = torch.where(s[:, 1:2] < 0.5, -1.0, 1.0)
        x = torch.cat([x0, wall])
        t = torch.cat([torch.zeros_like(x0), s[:, 2:]])
        u = torch.cat([-torch.sin(math.pi * x0), torch.zeros_like(wall)])
        return x, t, u
