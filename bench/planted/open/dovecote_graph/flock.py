"""A made-up flock: birds of one loft are seen together more often."""

from dataclasses import dataclass

import torch


@dataclass
class Flock:
    x: torch.Tensor
    y: torch.Tensor
    src: torch.Tensor
    dst: torch.Tensor
    train: torch.Tensor
    held_out: torch.Tensor
    lofts: int


def make_flock(birds=2200, lofts=9, features=48, edges=9000, seed=2):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, lofts, (birds,), generator=g)
    x = torch.randn(birds, features, generator=g) + 0.5 * torch.randn(lofts, features, generator=g)[y]
    src = torch.randint(0, birds, (edges,), generator=g)
    order = torch.argsort(y)
    start = torch.searchsorted(y[order], y[src])
    size = torch.bincount(y, minlength=lofts)[y[src]]
    kin = order[(start + (torch.rand(edges, generator=g) * size).long()).clamp(max=birds - 1)]
    stray = torch.randint(0, birds, (edges,), generator=g)
    dst = torch.where(torch.rand(edges, generator=g) < 0.7, kin, stray)
    split = torch.randperm(birds, generator=g)
    return Flock(x, y, torch.cat([src, dst]), torch.cat([dst, src]), split[:1700], split[1700:], lofts)
