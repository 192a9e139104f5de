"""Real harmonics on the sphere, by the usual recursion, and the fit of a field to them."""

import math

import torch


def legendre(degree: int, x: torch.Tensor) -> dict[tuple[int, int], torch.Tensor]:
    table = {(0, 0): torch.ones_like(x)}
    root = torch.sqrt((1 - x * x).clamp(min=0))
    for m in range(1, degree + 1):
        table[m, m] = -(2 * m - 1) * root * table[m - 1, m - 1] / (2 * m)
    for m in range(degree):
        table[m + 1, m] = (2 * m + 1) * x * table[m, m] / (m + 1)
    for m in range(degree + 1):
        for n in range(m + 2, degree + 1):
            table[n, m] = ((2 * n - 1) * x * table[n - 1, m] - (n - 1) * table[n - 2, m]) / n
    return table


def harmonics(degree: int, longitude: torch.Tensor, latitude: torch.Tensor) -> torch.Tensor:
    table = legendre(degree, torch.sin(latitude))
    columns = []
    for n in range(degree + 1):
        for m in range(-n, n + 1):
            around = torch.cos(m * longitude) if m >= 0 else torch.sin(-m * longitude)
            columns.append(math.sqrt(2 * n + 1) * table[n, abs(m)] * around)
    basis = torch.stack(columns, dim=1)
    return basis / basis.norm(dim=0, keepdim=True).clamp(min=1e-6)


def projector(basis: torch.Tensor, ridge: float) -> torch.Tensor:
    """Least squares with a ridge: from values at the gauges to coefficients."""
    gram = basis.T @ basis + ridge * torch.eye(basis.shape[1])
    return torch.linalg.solve(gram, basis.T)
