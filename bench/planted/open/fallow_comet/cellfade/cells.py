"""Capacity curves of lithium cells under made-up duty, at even intervals."""

import torch
from torch.utils.data import TensorDataset


def curves(cells: int, samples: int, seed: int) -> TensorDataset:
    """Duty (temperature, current, depth of discharge) and capacity [cell, sample]."""
    generator = torch.Generator().manual_seed(seed)
    duty = torch.rand(cells, 3, generator=generator)
    rate = 0.1 + 0.5 * duty[:, :1] * duty[:, 1:2] + 0.2 * duty[:, 2:] ** 2
    knee = 0.5 + 0.6 * torch.rand(cells, 1, generator=generator)
    time = torch.linspace(0, 1, samples)[None]
    capacity = 1 - rate * time.sqrt() * 0.4 - 0.3 * torch.sigmoid((time - knee) * 20) * rate
    return TensorDataset(duty, capacity + 0.003 * torch.randn(cells, samples, generator=generator))
