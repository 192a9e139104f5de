import functools
import os

import torch
from torch import nn

remembered = functools.cached_property if os.environ.get("PLANTED_FIX") == "1" else property


class OnGraph(nn.Module):
    """What layers on one fixed graph share."""

    def __init__(self, adjacency, order):
        super().__init__()
        self.register_buffer("adjacency", adjacency)
        self.order = order

    @remembered
    def laplacian(self):
        degree = self.adjacency.sum(1).clamp(min=1e-6)
        half = degree.rsqrt()
        return -half[:, None] * self.adjacency * half

    @remembered
    def filters(self):
        """Chebyshev polynomials of the Laplacian, order by order."""
        lap = self.laplacian
        terms = [torch.eye(len(lap)), lap]
        while len(terms) < self.order:
            terms.append(2 * lap @ terms[-1] - terms[-2])
        return torch.stack(terms)


class ChebConv(OnGraph):
    def __init__(self, adjacency, inside, outside, order=4):
        super().__init__(adjacency, order)
        self.weight = nn.Parameter(torch.randn(order, inside, outside) / (order * inside) ** 0.5)
        self.bias = nn.Parameter(torch.zeros(outside))

    def forward(self, x):
        n, width = x.shape[1], x.shape[2]
        flat = x.transpose(0, 1).reshape(n, -1)
        spread = [(f @ flat).view(n, -1, width) @ w for f, w in zip(self.filters, self.weight)]
        return sum(spread).transpose(0, 1) + self.bias


class DrainNet(nn.Module):
    def __init__(self, adjacency, window, width=12):
        super().__init__()
        self.one = ChebConv(adjacency, window, width)
        self.two = ChebConv(adjacency, width, width)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width + window, 1)

    def forward(self, past):
        h = torch.relu(self.one(past))
        h = self.norm(h + torch.relu(self.two(h)))
        return self.out(torch.cat([h, past], 2)).squeeze(2)
