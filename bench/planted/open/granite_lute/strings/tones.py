"""Plucked strings: the decay of a string tells its gauge, the overtones where it was plucked."""

import torch
from torch.utils.data import TensorDataset


def plucks(count: int, frames: int, partials: int, seed: int) -> TensorDataset:
    g = torch.Generator().manual_seed(seed)
    where, gauge = 0.05 + 0.45 * torch.rand(count, 1, 1, generator=g), 0.5 + torch.rand(count, 1, 1, generator=g)
    n = torch.arange(1, partials + 1)
    at = torch.arange(frames)[:, None] / frames
    energy = (torch.sin(n * torch.pi * where) / n).abs() * torch.exp(-at * gauge * n.sqrt() * 2)
    noisy = energy + 0.02 * torch.randn(energy.shape, generator=g)
    return TensorDataset(noisy.log1p(), torch.cat([where, gauge], -1).flatten(1))


def collate(rows: list[tuple[torch.Tensor, torch.Tensor]]) -> dict[str, torch.Tensor]:
    spectra, truth = zip(*rows, strict=True)
    return {"spectra": torch.stack(spectra), "truth": torch.stack(truth)}
