"""Radar beams: reflectivity in range gates, showers as bumps, and clutter that does not move."""

import torch
from torch.utils.data import TensorDataset


def beams(count: int, gates: int, seed: int) -> TensorDataset:
    """Two sweeps and their width [beam, gate, 3]; rain rate [beam, gate]."""
    dice = torch.Generator().manual_seed(seed)
    at = torch.linspace(0, 1, gates)
    rate = torch.zeros(count, gates)
    for _ in range(4):
        middle, size = torch.rand(count, 1, generator=dice), 0.02 + 0.06 * torch.rand(count, 1, generator=dice)
        rate += torch.rand(count, 1, generator=dice) * torch.exp(-(((at - middle) / size) ** 2))
    clutter = (torch.rand(count, gates, generator=dice) < 0.05).float()
    lost = torch.cumsum(rate, dim=1) * 0.01
    first = rate - lost + clutter + 0.1 * torch.randn(count, gates, generator=dice)
    second = rate.roll(3, dims=1) - lost + clutter + 0.1 * torch.randn(count, gates, generator=dice)
    spread = (1 - clutter) * rate.sqrt() + 0.1 * torch.randn(count, gates, generator=dice)
    return TensorDataset(torch.stack([first, second, spread], dim=-1), rate)
