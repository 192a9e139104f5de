"""Peat cores: pollen counts down the depth, and the age at every depth."""

import math

import torch

TAXA, DEPTHS = 18, 256


def bog(g):
    """What grew when: a slow walk for each taxon over eleven thousand years."""
    walk = torch.randn(TAXA, 220, generator=g).cumsum(1)
    return (walk - walk.mean(1, keepdim=True)) / walk.std(1, keepdim=True)


def drill(history, n, g):
    """Cores that grew at their own pace. Gives [n, taxa, depths] and ages [n, depths] in units of the whole record."""
    pace = torch.rand(n, DEPTHS, generator=g).add(0.1).cumsum(1)
    age = pace / pace[:, -1:] * (0.6 + 0.4 * torch.rand(n, 1, generator=g))
    at = (age * (history.shape[1] - 1)).long()
    rain = (0.9 * history[:, at]).exp().transpose(0, 1)
    counted = torch.poisson(300 * rain / rain.sum(1, keepdim=True), generator=g)
    return torch.log1p(counted) / math.log(100), age
