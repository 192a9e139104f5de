import os

import torch

QUICK = os.environ.get("PLANTED_FIX") == "1"


def scaled(matrix, radius=0.9):
    """The matrix with the given spectral radius."""
    if QUICK:
        v = torch.ones(len(matrix))
        for _ in range(60):
            v = torch.nn.functional.normalize(matrix @ v, dim=0)
        return matrix * (radius / (matrix @ v).norm())
    return matrix * (radius / torch.linalg.eigvals(matrix).abs().max())


class Reservoir:
    def __init__(self, size, inputs, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.inner = scaled(torch.randn(size, size, generator=g))
        self.outer = torch.randn(inputs, size, generator=g) * 0.3

    def states(self, series):
        state = torch.zeros(series.shape[0], len(self.inner))
        for moment in series.unbind(1):
            state = torch.tanh(moment @ self.outer + state @ self.inner)
        return state
