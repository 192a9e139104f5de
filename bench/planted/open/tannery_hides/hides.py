import torch
from torch.utils.data import Dataset


class Hides(Dataset):
    """Measured columns of a hide and its graded price."""

    def __init__(self, count, columns, seed):
        generator = torch.Generator().manual_seed(seed)
        self.columns = torch.randn(count, columns, generator=generator)
        rule = torch.randn(columns, 4, generator=generator) / columns**0.5
        factors = torch.tanh(self.columns @ rule)
        self.price = factors.prod(1) + factors.sum(1) + 0.1 * torch.randn(count, generator=generator)

    def __len__(self):
        return len(self.price)

    def __getitem__(self, rows):
        return self.columns[rows], self.price[rows]
