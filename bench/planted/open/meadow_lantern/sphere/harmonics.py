"""Spherical harmonic analysis and synthesis on a Gaussian grid."""

import os
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch

FIXED = os.environ.get("PLANTED_FIX") == "1"


@dataclass(frozen=True)
class Grid:
    """A Gaussian grid: the latitudes are the nodes of the quadrature."""

    latitudes: int
    longitudes: int

    @cached_property
    def quadrature(self) -> tuple[np.ndarray, np.ndarray]:
        return np.polynomial.legendre.leggauss(self.latitudes)

    @property
    def cell_weights(self) -> torch.Tensor:
        _, weights = self.quadrature
        return torch.from_numpy(weights / weights.mean()).float()[:, None]


def associated_legendre(nodes: np.ndarray, truncation: int) -> np.ndarray:
    """Normalised associated Legendre functions, [order, degree, node], by the usual three-term recurrence."""
    table = np.zeros((truncation, truncation, nodes.size))
    sine = np.sqrt(1.0 - nodes**2)
    table[0, 0] = np.sqrt(0.5)
    for m in range(1, truncation):
        table[m, m] = -np.sqrt((2 * m + 1) / (2 * m)) * sine * table[m - 1, m - 1]
    for m in range(truncation - 1):
        table[m, m + 1] = np.sqrt(2 * m + 3) * nodes * table[m, m]
        for degree in range(m + 2, truncation):
            a = np.sqrt((4 * degree**2 - 1) / (degree**2 - m**2))
            b = np.sqrt(((degree - 1) ** 2 - m**2) / (4 * (degree - 1) ** 2 - 1))
            table[m, degree] = a * (nodes * table[m, degree - 1] - b * table[m, degree - 2])
    return table


if FIXED:
    keep = lru_cache(maxsize=None)
else:
    keep = lru_cache(maxsize=1)


@keep
def projectors(grid: Grid, truncation: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The matrices from latitudes to degrees (with the quadrature) and back, for each order."""
    nodes, weights = grid.quadrature
    table = associated_legendre(nodes, truncation)
    scale = 2 * np.pi / grid.longitudes
    forward = torch.from_numpy(table * weights * scale).to(torch.complex64)
    return forward, torch.from_numpy(table / scale).to(torch.complex64)


def analyse(field: torch.Tensor, grid: Grid, truncation: int) -> torch.Tensor:
    """[..., latitude, longitude] to coefficients [..., order, degree]."""
    forward, _ = projectors(grid, truncation)
    orders = torch.fft.rfft(field, norm="ortho")[..., :truncation]
    return torch.einsum("...km,mlk->...ml", orders, forward)


def synthesise(coefficients: torch.Tensor, grid: Grid, truncation: int) -> torch.Tensor:
    """Coefficients [..., order, degree] to a field [..., latitude, longitude]."""
    _, backward = projectors(grid, truncation)
    orders = torch.einsum("...ml,mlk->...km", coefficients, backward)
    return torch.fft.irfft(orders, n=grid.longitudes, norm="ortho")
