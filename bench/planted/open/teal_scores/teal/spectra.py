import torch
from torch.utils.data import DataLoader, TensorDataset


def spectra(rows, dim, seed):
    g = torch.Generator().manual_seed(seed)
    axis = torch.linspace(0, 1, dim)
    total = torch.zeros(rows, dim)
    for _ in range(4):
        centre, wide = torch.rand(rows, 1, generator=g), 0.02 + 0.08 * torch.rand(rows, 1, generator=g)
        total += torch.rand(rows, 1, generator=g) * torch.exp(-(((axis - centre) / wide) ** 2))
    return total - total.mean(1, keepdim=True)


def loader(rows, dim, batch, seed):
    return DataLoader(
        TensorDataset(spectra(rows, dim, seed)), batch, shuffle=True, drop_last=True, generator=torch.Generator().manual_seed(seed)
    )
