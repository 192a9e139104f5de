import torch


def pulses(batch, points, g):
    t = torch.linspace(0, 1, points)
    rate = 2 + 3 * torch.rand(batch, 1, generator=g)
    where = 0.2 + 0.4 * torch.rand(batch, 1, generator=g)
    return torch.exp(-(((t - where) * 6) ** 2)) * torch.sin(rate * 6.283 * t)
