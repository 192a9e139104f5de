"""Strain gauge windows of rotor blades: healthy or delaminated."""

import torch


def windows(n: int, length: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (n,), generator=g)
    t = torch.arange(length) / length
    base = torch.sin(2 * torch.pi * 6 * t)[None] + 0.3 * torch.randn(n, length, generator=g)
    base += y[:, None] * 0.4 * torch.sin(2 * torch.pi * 31 * t)[None]
    return base[:, None], y
