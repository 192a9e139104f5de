import torch
from torch.utils.data import TensorDataset


def outlines(count: int, classes: int, size: int = 32, seed: int = 0) -> TensorDataset:
    """Leaf shapes by polar outlines with lobes and teeth."""
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(0, classes, (count,), generator=g)
    lobes = 2 + label.float()
    axis = torch.linspace(-1, 1, size)
    angle = torch.atan2(axis[:, None].expand(size, size), axis[None].expand(size, size))
    radius = (axis[:, None] ** 2 + axis[None] ** 2).sqrt()
    turn = torch.rand(count, 1, 1, generator=g) * 6.28
    edge = 0.6 + 0.2 * torch.cos(lobes[:, None, None] * (angle + turn))
    leaf = torch.sigmoid((edge - radius) * 12)
    image = leaf.unsqueeze(1) * torch.rand(count, 3, 1, 1, generator=g) + 0.3 * torch.randn(count, 3, size, size, generator=g)
    return TensorDataset(image, label)
