"""Little pictures of gems, drawn when asked for."""

import torch


def bank(count: int, side: int, seed: int) -> torch.Tensor:
    g = torch.Generator().manual_seed(seed)
    line = torch.linspace(-1, 1, side)
    y, x = torch.meshgrid(line, line, indexing="ij")
    radius = torch.rand(count, 1, 1, generator=g) * 0.5 + 0.3
    angle = torch.rand(count, 1, 1, generator=g) * 3.14
    facets = torch.cos(6 * (torch.atan2(y, x)[None] + angle)) * 0.1
    body = torch.sigmoid((radius + facets - (x**2 + y**2).sqrt()[None]) * 12)
    return (body * 2 - 1).unsqueeze(1)
