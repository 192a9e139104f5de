import torch
from torch.utils.data import TensorDataset


def loads(count: int, seed: int = 50) -> TensorDataset:
    """Pictures of loads under a crane (two channels: height and heat) and how far they swing."""
    g = torch.Generator().manual_seed(seed)
    swing = torch.randn(count, 2, generator=g)
    axis = torch.linspace(-2, 2, 28)
    height = torch.exp(-((axis[:, None] - swing[:, 0, None, None]) ** 2 + (axis[None] - swing[:, 1, None, None]) ** 2) * 2)
    heat = height.flip(1) * 0.5
    x = torch.stack([height, heat], 1) + 0.3 * torch.randn(count, 2, 28, 28, generator=g)
    return TensorDataset(x, swing)
