"""Tiles with crackled glaze."""

import torch


def tiles(count: int, size: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    axis = torch.linspace(-1, 1, size)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    centres = torch.rand(count, 9, 2, generator=generator) * 2 - 1
    distance = ((x - centres[..., 0, None, None]).square() + (y - centres[..., 1, None, None]).square()).sqrt()
    nearest = distance.topk(2, dim=1, largest=False).values
    crackle = (nearest[:, 1] - nearest[:, 0]).clamp(0, 0.3) / 0.3
    colour = torch.rand(count, 3, 1, 1, generator=generator)
    return (2 * colour * crackle[:, None] - 1).clamp(-1, 1)
