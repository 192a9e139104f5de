"""Spectral blocks between a lift and a readout."""

import torch
from torch import nn

from .harmonics import Grid, analyse, synthesise


class SpectralOperator(nn.Module):
    """What every block shares: to coefficients, something learned, and back."""

    def __init__(self, grid: Grid, truncation: int) -> None:
        super().__init__()
        self.grid, self.truncation = grid, truncation

    def spectrum(self, coefficients: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def forward(self, field: torch.Tensor) -> torch.Tensor:
        coefficients = analyse(field, self.grid, self.truncation)
        return synthesise(self.spectrum(coefficients), self.grid, self.truncation)


class DegreeFilter(SpectralOperator):
    """Mixes the channels with one complex matrix for each order."""

    def __init__(self, grid: Grid, truncation: int, channels: int) -> None:
        super().__init__(grid, truncation)
        self.real = nn.Parameter(torch.randn(truncation, channels, channels) / channels)
        self.imaginary = nn.Parameter(torch.zeros(truncation, channels, channels))

    def spectrum(self, coefficients: torch.Tensor) -> torch.Tensor:
        weight = torch.complex(self.real, self.imaginary)
        return torch.einsum("bcml,mcd->bdml", coefficients, weight)


class Block(nn.Module):
    def __init__(self, grid: Grid, truncation: int, channels: int) -> None:
        super().__init__()
        self.filter = DegreeFilter(grid, truncation, channels)
        self.local = nn.Linear(channels, channels)

    def forward(self, field: torch.Tensor) -> torch.Tensor:
        local = self.local(field.movedim(1, -1)).movedim(-1, 1)
        return field + nn.functional.gelu(self.filter(field) + local)


class Forecaster(nn.Module):
    def __init__(self, grid: Grid, channels: int, truncations: tuple[int, ...]) -> None:
        super().__init__()
        self.lift = nn.Linear(1, channels)
        self.blocks = nn.ModuleList(Block(grid, truncation, channels) for truncation in truncations)
        self.readout = nn.Linear(channels, 1)

    def forward(self, field: torch.Tensor) -> torch.Tensor:
        x = self.lift(field.movedim(1, -1)).movedim(-1, 1)
        for block in self.blocks:
            x = block(x)
        return field + self.readout(x.movedim(1, -1)).movedim(-1, 1)
