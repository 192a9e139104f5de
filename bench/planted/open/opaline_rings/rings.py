"""Growth rings of opal: radial profiles that the generator learns to draw."""

import math

import torch
from torch import Tensor


def profiles(count: int, points: int, seed: int) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    r = torch.linspace(0, 1, points)
    rings = 3 + torch.randint(0, 5, (count, 1), generator=g)
    phase = torch.rand(count, 1, generator=g)
    fade = 1 + 2 * torch.rand(count, 1, generator=g)
    return torch.sin(2 * math.pi * (rings * r + phase)) * torch.exp(-fade * r)
