"""Made-up deltas: smooth random beds, and the sediment that slow deep water leaves."""

import torch
from torch.utils.data import TensorDataset


def smooth(count: int, fields: int, side: int, g: torch.Generator) -> torch.Tensor:
    coarse = torch.randn(count, fields, side // 8, side // 8, generator=g)
    return torch.nn.functional.interpolate(coarse, size=(side, side), mode="bicubic", align_corners=False)


def deltas(count: int, fields: int, side: int, seed: int) -> TensorDataset:
    g = torch.Generator().manual_seed(seed)
    maps = smooth(count, fields, side, g)
    settled = torch.sigmoid(2 * maps[:, :1] - maps[:, 1:2].abs()) * (1 + 0.2 * maps[:, 2:3].tanh())
    return TensorDataset(maps, settled + 0.03 * torch.randn(settled.shape, generator=g))
