"""Directional spectra of made-up seas, as energy by direction and frequency, flat."""

from collections.abc import Iterator

import torch


def spectra(count: int, directions: int, frequencies: int, seed: int) -> torch.Tensor:
    g = torch.Generator().manual_seed(seed)
    angle = torch.linspace(-torch.pi, torch.pi, directions)[None, :, None]
    pitch = torch.linspace(0.2, 3, frequencies)[None, None, :]
    sea = torch.zeros(count, directions, frequencies)
    for _ in range(2):
        towards = 2 * torch.pi * (torch.rand(count, 1, 1, generator=g) - 0.5)
        peak = 0.5 + 1.5 * torch.rand(count, 1, 1, generator=g)
        sea += torch.exp(2 * torch.cos(angle - towards) - 2) * torch.exp(-((pitch / peak).log() ** 2) * 6)
    return (2 * sea / sea.amax((1, 2), keepdim=True) - 1).flatten(1)


def drawn(sea: torch.Tensor, batch: int, latent: int, seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    g = torch.Generator().manual_seed(seed)
    while True:
        rows = torch.randint(len(sea), (batch,), generator=g)
        yield sea[rows], torch.randn(batch, latent, generator=g), torch.randn(batch, latent, generator=g)
