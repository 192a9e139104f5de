"""Point clouds of sea shells: logarithmic spirals swept by a circle, four genera of different growth."""

import math

import torch
from torch import Tensor

GENERA = [(0.08, 0.9), (0.12, 0.5), (0.16, 1.3), (0.2, 0.2)]  # growth, rise


def grow(clouds: int, points: int, seed: int) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    labels = torch.arange(clouds) % len(GENERA)
    growth, rise = torch.tensor(GENERA)[labels].unsqueeze(-1).unbind(1)
    angle = 6 * math.pi * torch.rand(clouds, points, generator=g)
    around = 2 * math.pi * torch.rand(clouds, points, generator=g)
    radius = torch.exp(growth * angle)
    tube = 0.35 * radius
    x = (radius + tube * around.cos()) * angle.cos()
    y = (radius + tube * around.cos()) * angle.sin()
    z = rise * radius + tube * around.sin()
    cloud = torch.stack([x, y, z], dim=-1)
    cloud = cloud - cloud.mean(1, keepdim=True)
    cloud = cloud / cloud.norm(dim=-1).amax(1)[:, None, None]
    return cloud + 0.01 * torch.randn(cloud.shape, generator=g), labels
