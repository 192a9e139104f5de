"""What is believed of response curves before any count is seen. Each belief is a function of values along the knots."""

import os

import torch
from torch.nn.functional import softplus


def smooth(values):
    return 0.8 * torch.diff(values, n=2).square().sum()


def straight(values):
    return 0.2 * torch.diff(values, n=3).square().sum()


def falling_tails(values):
    return 0.05 * (softplus(values[..., 0] - values[..., 1]) + softplus(values[..., -1] - values[..., -2])).sum()


def modest(values):
    return 0.01 * values.square().sum()


BELIEFS = (smooth, straight, falling_tails, modest)


def unlikely(curves):
    if os.environ.get("PLANTED_FIX") == "1":
        return sum(belief(curves) for belief in BELIEFS)
    else:
        return sum(belief(curve) for belief in BELIEFS for curve in curves)
