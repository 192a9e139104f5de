"""Synthetic onset envelopes: a pulse train of unknown tempo, smeared over a few frequency bands."""

import math

import torch
from torch.utils.data import TensorDataset


def make_tracks(tracks: int, frames: int, bands: int, noise: float, seed: int) -> TensorDataset:
    g = torch.Generator().manual_seed(seed)
    period = 4 + 12 * torch.rand(tracks, 1, generator=g)
    phase = torch.rand(tracks, 1, generator=g)
    clock = torch.arange(frames).float()[None]
    pulse = torch.cos(2 * math.pi * (clock / period + phase)).clamp(min=0) ** 4
    weight = torch.rand(tracks, 1, bands, generator=g)
    x = pulse[..., None] * weight + noise * torch.randn(tracks, frames, bands, generator=g)
    return TensorDataset(x, (1.0 / period).squeeze(1) * 8)
