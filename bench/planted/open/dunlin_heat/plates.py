"""Temperatures of a heated plate: sums of decaying modes, seen at scattered points and times."""

import math

import torch


def solution(x, y, t, modes):
    total = torch.zeros_like(x)
    for a, b, strength in modes:
        decay = torch.exp(-0.1 * (a * a + b * b) * t)
        total = total + strength * decay * torch.sin(a * math.pi * x) * torch.sin(b * math.pi * y)
    return total


def measurements(count: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    x, y, t = torch.rand(3, count, generator=generator)
    modes = [(1, 1, 1.0), (2, 1, 0.6), (1, 3, 0.4), (3, 2, 0.3)]
    seen = solution(x, y, t, modes) + 0.01 * torch.randn(count, generator=generator)
    return torch.stack([x, y, t], 1), seen


def split(inputs, seen, chunks: int):
    """Parts that are gone through in turn; each is a fixed problem for a few inner steps."""
    return list(zip(inputs.chunk(chunks), seen.chunk(chunks), strict=True))
