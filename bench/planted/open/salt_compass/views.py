import torch
from torch.utils.data import DataLoader, Dataset


class SensorWindows(Dataset):
    """Multichannel windows; an item is two randomly disturbed views of the same window."""

    def __init__(self, count, channels=6, length=96, seed=0):
        gen = torch.Generator().manual_seed(seed)
        t = torch.linspace(0, 1, length)
        freq = torch.rand(count, channels, 1, generator=gen) * 14 + 1
        phase = torch.rand(count, channels, 1, generator=gen) * 6.283
        self.clean = torch.sin(6.283 * freq * t + phase)
        self.seed = seed

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, i):
        x = self.clean[i]
        gen = torch.Generator().manual_seed(self.seed * 7919 + i)
        noise = torch.randn(2, *x.shape, generator=gen) * 0.3
        scale = 1 + 0.2 * torch.randn(2, x.shape[0], 1, generator=gen)
        return x * scale + noise


def windows(count, batch_size, seed):
    return DataLoader(
        SensorWindows(count, seed=seed), batch_size=batch_size, shuffle=True, drop_last=True, generator=torch.Generator().manual_seed(seed)
    )
