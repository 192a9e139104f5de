"""Profiles of potsherds: radius over height, with the wheel's grooves."""

import torch

POINTS = 96


def sherds(count, seed):
    g = torch.Generator().manual_seed(seed)
    h = torch.linspace(0, 1, POINTS)
    a, b, c = torch.rand(3, count, 1, generator=g)
    body = 0.5 + 0.4 * torch.sin(3.14 * (a * h + 0.3 * b)) * (1 - 0.5 * c * h)
    grooves = 0.03 * torch.sin(60 * h * (0.5 + b))
    thick = 0.1 + 0.05 * c + 0.02 * torch.cos(6 * h)
    return torch.stack([body + grooves, thick.expand(count, POINTS)], 1) * 2 - 1
