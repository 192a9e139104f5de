"""Splitting the channels over heads and putting them together again."""

import os

import torch

FIXED = os.environ.get("PLANTED_FIX") == "1"


def part(x: torch.Tensor, heads: int) -> torch.Tensor:
    """[beam, gate, channel] to one sequence for each head."""
    split = x.unflatten(-1, (heads, -1)).transpose(1, 2)
    if FIXED:
        return split
    else:
        return split.flatten(0, 1)


def join(x: torch.Tensor, heads: int) -> torch.Tensor:
    if FIXED:
        return x.transpose(1, 2).flatten(2)
    else:
        return x.unflatten(0, (-1, heads)).transpose(1, 2).flatten(2)
