import copy

import torch
from torch import nn


def encoder(rings, width, out):
    return nn.Sequential(nn.Linear(rings, width), nn.LayerNorm(width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, out))


class Twins(nn.Module):
    """A query encoder that learns, and a slow one for the keys."""

    def __init__(self, rings, width, out):
        super().__init__()
        self.quick = encoder(rings, width, out)
        self.slow = copy.deepcopy(self.quick).requires_grad_(False)

    def forward(self, x):
        return nn.functional.normalize(self.quick(x), dim=1)

    @torch.no_grad()
    def key(self, x):
        return nn.functional.normalize(self.slow(x), dim=1)

    @torch.no_grad()
    def follow(self, pace):
        torch._foreach_lerp_(list(self.slow.parameters()), list(self.quick.parameters()), pace)


def contrast(query, key, others, heat):
    right = (query * key).sum(1, keepdim=True)
    wrong = query @ others.T
    return nn.functional.cross_entropy(torch.cat([right, wrong], 1) / heat, torch.zeros(len(query), dtype=torch.long))
