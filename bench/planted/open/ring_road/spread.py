"""How a signal spreads over the roads."""

import functools
import os

import torch
from roads import Roads

FIXED = os.environ.get("PLANTED_FIX") == "1"


def weights(roads: Roads) -> torch.Tensor:
    """Symmetric weights: near neighbours count for more."""
    a, b = torch.tensor(roads.links).T
    near = torch.exp(-(roads.places[a] - roads.places[b]).norm(dim=1))
    matrix = torch.zeros(roads.sensors, roads.sensors)
    matrix[a, b] = near
    matrix[b, a] = near
    return matrix


def laplacian(roads: Roads) -> torch.Tensor:
    matrix = weights(roads)
    scale = matrix.sum(dim=1).rsqrt()
    return torch.eye(roads.sensors) - scale[:, None] * matrix * scale[None, :]


def heat(roads: Roads, times: tuple[float, ...]) -> torch.Tensor:
    """The heat kernels of the network, one for each time."""
    flow = laplacian(roads)
    return torch.stack([torch.matrix_exp(-time * flow) for time in times])


if FIXED:
    heat = functools.cache(heat)
