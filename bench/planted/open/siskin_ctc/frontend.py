"""Waveform -> log filter bank, with the slow and the fast trend of each band taken out (wind, then traffic)."""

import functools
import os

import torch
from torch import nn


def trend_operator(frames: int, strength: float) -> torch.Tensor:
    """Whittaker smoother for `frames` evenly spaced points: (1 + strength * D'D)^-1 with D the second difference."""
    eye = torch.eye(frames)
    d = eye[2:] - 2 * eye[1:-1] + eye[:-2]
    return torch.linalg.inv(eye + strength * (d.T @ d))


if os.environ.get("PLANTED_FIX") == "1":
    trend_operator = functools.lru_cache(trend_operator)


class Detrend(nn.Module):
    def __init__(self, strength: float):
        super().__init__()
        self.strength = strength

    def forward(self, bands: torch.Tensor) -> torch.Tensor:
        return bands - bands @ trend_operator(bands.shape[-1], self.strength)


def triangles(bands: int, bins: int) -> torch.Tensor:
    """Triangular filters, evenly spaced on a square-root scale (songs use the middle octaves)."""
    edges = torch.linspace(2.0, (bins - 1) ** 0.5, bands + 2) ** 2
    at = torch.arange(bins).float()[None]
    low, mid, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    return torch.minimum((at - low) / (mid - low), (high - at) / (high - mid)).clamp(min=0)


class FrontEnd(nn.Module):
    def __init__(self, n_fft=256, hop=48, bands=32):
        super().__init__()
        self.n_fft, self.hop, self.channels = n_fft, hop, 2 * bands
        self.register_buffer("window", torch.hann_window(n_fft))
        self.register_buffer("filters", triangles(bands, n_fft // 2 + 1))
        self.wind = Detrend(4000.0)
        self.traffic = Detrend(20.0)

    @torch.no_grad()
    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True)
        bands = torch.log(self.filters @ spectrum.abs() + 1e-4)
        return torch.cat([self.wind(bands), self.traffic(bands)], 1)
