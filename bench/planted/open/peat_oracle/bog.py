"""Cores from bogs: counts of testate amoebae, level by level, with the water table at which they lived."""

import torch

SPECIES, KNOTS, LEVELS = 40, 18, 320


def hats(depth, knots=KNOTS):
    """Linear B-splines at the given depths (0..1): levels x knots."""
    at = torch.linspace(0, 1, knots, dtype=depth.dtype)
    return (1 - (depth[:, None] - at).abs() * (knots - 1)).clamp(min=0)


def core(number):
    dice = torch.Generator().manual_seed(1000 + number)
    depth = torch.rand(LEVELS, generator=dice, dtype=torch.float64)
    best = torch.rand(SPECIES, generator=dice, dtype=torch.float64)
    width = 0.08 + 0.2 * torch.rand(SPECIES, generator=dice, dtype=torch.float64)
    liking = 2 - 0.5 * ((depth[:, None] - best) / width).square().clamp(max=12)
    share = torch.softmax(liking, 1)
    seen = torch.multinomial(share, 150, replacement=True, generator=dice)
    counts = torch.zeros(LEVELS, SPECIES, dtype=torch.float64).scatter_add_(1, seen, torch.ones_like(seen, dtype=torch.float64))
    return hats(depth), counts
