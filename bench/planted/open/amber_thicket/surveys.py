"""Made-up field surveys: a plot's soil readings by depth, and the plants found on it."""

import torch
from torch.utils.data import Dataset


class Surveys(Dataset):
    def __init__(self, plots: int, depths: int, readings: int, plants: int, seed: int) -> None:
        g = torch.Generator().manual_seed(seed)
        law = torch.Generator().manual_seed(77)
        niche = torch.randn(plants, readings, generator=law)
        self.soil = torch.randn(plots, depths, readings, generator=g).cumsum(1) / depths**0.5
        wish = torch.einsum("ndr,pr->np", self.soil, niche) / depths + 0.5 * torch.randn(plots, plants, generator=g)
        self.found = (wish > 0.6).float()

    def __len__(self) -> int:
        return len(self.soil)

    def __getitem__(self, plot: int) -> dict[str, torch.Tensor]:
        return {"soil": self.soil[plot], "labels": self.found[plot]}
