"""Counts of herons at 40 ponds, from weather and the counts of the days before."""

import torch


def days(count: int, ponds: int = 40, seed: int = 23):
    g = torch.Generator().manual_seed(seed)
    weather = torch.randn(count, 8, generator=g)
    past = torch.rand(count, ponds, generator=g) * 6
    mix = torch.softmax(torch.randn(ponds, ponds, generator=g), dim=1)
    like = torch.randn(8, ponds, generator=g) * 0.5
    mean = torch.relu(past @ mix + weather @ like) + 0.1
    return torch.cat([weather, past], 1), torch.poisson(mean, generator=g)
