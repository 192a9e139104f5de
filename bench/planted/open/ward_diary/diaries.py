"""Made-up ward diaries: the codes noted during a stay, the hours between them, and how the stay ended."""

from typing import NamedTuple

import torch
from torch.utils.data import Dataset

PAD = 0


class Stay(NamedTuple):
    codes: torch.Tensor
    gaps: torch.Tensor
    readmitted: float


class Diaries(Dataset):
    """Most stays are short; a few go on for weeks."""

    def __init__(self, stays: int, codes: int, longest: int, seed: int) -> None:
        rng = torch.Generator().manual_seed(seed)
        risk = torch.randn(codes, generator=torch.Generator().manual_seed(0))
        lengths = torch.exp(3.1 + 0.9 * torch.randn(stays, generator=rng)).long().clamp(6, longest)
        self.stays: list[Stay] = []
        for length in lengths.tolist():
            ward = int(torch.randint(codes - 1, (1,), generator=rng))
            noted = 1 + (ward + (torch.randn(length, generator=rng) * 12).long()).remainder(codes - 1)
            gaps = torch.empty(length).exponential_(0.2, generator=rng)
            chance = torch.sigmoid(6 * risk[noted].mean() + 0.02 * (30 - gaps.sum() / length))
            self.stays.append(Stay(noted, gaps, float(torch.rand(1, generator=rng) < chance)))

    def __len__(self) -> int:
        return len(self.stays)

    def __getitem__(self, index: int) -> Stay:
        return self.stays[index]

    def summary(self) -> str:
        lengths = torch.tensor([len(stay.codes) for stay in self.stays]).float()
        ends = torch.tensor([stay.readmitted for stay in self.stays])
        return f"{len(self)} stays, {lengths.mean():.1f} notes each ({lengths.max():.0f} at most), {ends.mean():.2f} readmitted"
