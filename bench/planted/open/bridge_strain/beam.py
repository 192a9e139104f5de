"""The bending of a beam under a moving load, by a network that obeys the beam equation (u'''' = q)."""

import torch


def points(count: int, seed: int):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(count, 1, generator=g)
    place = torch.rand(count, 1, generator=g)
    return x, place


def load(x, place):
    return 5 * torch.exp(-((x - place) ** 2) / 0.02)


def derivative(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


def residual(net, x, place):
    x = x.requires_grad_()
    u = x * (1 - x) * net(torch.cat([x, place], 1))
    bend = derivative(derivative(u, x), x)
    return bend, derivative(derivative(bend, x), x) / 50 - load(x, place) / 50
