"""Made-up heartbeats: windows of a sum of bumps with a drifting baseline."""

import torch
from torch.utils.data import Dataset

BUMPS = [(0.20, 0.15, 0.030), (0.36, -0.20, 0.012), (0.40, 1.30, 0.016), (0.44, -0.35, 0.014), (0.66, 0.30, 0.045)]


def heartbeats(count: int, length: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    time = torch.linspace(0, 1, length)
    beats = torch.zeros(count, length)
    for centre, height, width in BUMPS:
        moved = centre + 0.02 * torch.randn(count, 1, generator=generator)
        scaled = height * (1 + 0.15 * torch.randn(count, 1, generator=generator))
        beats += scaled * torch.exp(-((time - moved) ** 2) / (2 * width**2))
    phase = 6.283 * torch.rand(count, 1, generator=generator)
    return beats + 0.05 * torch.sin(6.283 * time + phase) + 0.01 * torch.randn(count, length, generator=generator)


class Beats(Dataset):
    def __init__(self, count: int, length: int, seed: int) -> None:
        beats = heartbeats(count, length, seed)
        self.mean, self.spread = beats.mean(), beats.std()
        self.beats = (beats - self.mean) / self.spread

    def __len__(self) -> int:
        return len(self.beats)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.beats[index]
