import os
from functools import cached_property

import numpy as np
import torch


class Mesh:
    """A point cloud on a dune surface with a symmetric neighbour graph."""

    def __init__(self, points, neighbours, seed):
        rng = np.random.default_rng(seed)
        flat = rng.uniform(0, 1, (points, 2))
        height = 0.1 * np.sin(6 * flat[:, 0]) + 0.05 * np.cos(9 * flat[:, 1])
        self.xyz = torch.from_numpy(np.column_stack([flat, height])).float()
        gap = torch.cdist(self.xyz, self.xyz)
        near = gap.topk(neighbours + 1, largest=False).indices[:, 1:]
        weight = torch.zeros(points, points)
        weight.scatter_(1, near, torch.exp(-gap.gather(1, near) * 20))
        self.weight = (weight + weight.T) / 2

    def __len__(self):
        return len(self.xyz)

    @cached_property
    def laplacian(self):
        return torch.diag(self.weight.sum(1)) - self.weight


class HeatFamily:
    """Heat operators of a mesh for several diffusion times."""

    def __init__(self, mesh, scales):
        self.mesh = mesh
        self.scales = scales
        self._kept = None

    @property
    def operators(self):
        if os.environ.get("PLANTED_FIX") == "1" and self._kept is not None:
            return self._kept
        self._kept = torch.stack([torch.linalg.matrix_exp(-t * self.mesh.laplacian) for t in self.scales])
        return self._kept
