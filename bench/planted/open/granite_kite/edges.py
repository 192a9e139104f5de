"""Convolution over the edges to the nearest neighbours in feature space."""

import torch
from torch import nn


def neighbours(x: torch.Tensor, k: int) -> torch.Tensor:
    """Numbers of the k nearest other points of each point: (clouds, points, k)."""
    with torch.no_grad():
        square = (x * x).sum(-1)
        distance = square.unsqueeze(2) - 2 * x @ x.transpose(1, 2) + square.unsqueeze(1)
        return distance.topk(k + 1, largest=False).indices[..., 1:]


def gather(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    clouds, points, k = index.shape
    offset = torch.arange(clouds, device=x.device).view(-1, 1, 1) * points
    return x.flatten(0, 1).index_select(0, (index + offset).flatten()).view(clouds, points, k, -1)


class EdgeConv(nn.Module):
    """What a point learns from the differences to its neighbours."""

    def __init__(self, inside: int, outside: int, k: int) -> None:
        super().__init__()
        self.k = k
        self.own, self.other = nn.Linear(inside, outside), nn.Linear(inside, outside, bias=False)
        self.norm = nn.LayerNorm(outside)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        index = neighbours(x, self.k)
        nearest = gather(self.other(x), index).amax(2)
        return nn.functional.gelu(self.norm(self.own(x) + nearest))


class Stage(nn.Sequential):
    """Two convolutions; the neighbours of the second are those after the first."""

    def __init__(self, inside: int, outside: int, k: int) -> None:
        super().__init__(EdgeConv(inside, outside, k), EdgeConv(outside, outside, k))
