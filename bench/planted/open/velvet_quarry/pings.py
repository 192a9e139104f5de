"""Sonar echoes as noisy copies of a few envelopes; an endless stream of batches."""

import math
from collections.abc import Iterator

import torch


def stream(length: int, kinds: int, noise: float, batch: int, seed: int) -> Iterator[torch.Tensor]:
    dice = torch.Generator().manual_seed(seed)
    t = torch.linspace(0, 1, length)
    pitch = 4 + 30 * torch.rand(kinds, 1, generator=dice)
    onset = 0.6 * torch.rand(kinds, 1, generator=dice)
    shape = torch.sin(2 * math.pi * pitch * t) * torch.exp(-8 * (t - onset).clamp(min=0)) * (t > onset)
    while True:
        which = torch.randint(kinds, (batch,), generator=dice)
        yield shape[which] + noise * torch.randn(batch, length, generator=dice)
