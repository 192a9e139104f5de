"""Egg, nest and weather records of made-up colonies; each trait is a target of its own."""

import torch
from lightning.pytorch import LightningDataModule
from torch.utils.data import DataLoader, TensorDataset


class Colonies(LightningDataModule):
    def __init__(self, nests: int, days: int, sensors: int, traits: int, batch: int) -> None:
        super().__init__()
        self.batch = batch
        g = torch.Generator().manual_seed(12)
        days_seen = torch.randn(nests, days, sensors, generator=g).cumsum(1) / days**0.5
        law = torch.randn(traits, sensors, generator=g)
        hard = torch.linspace(0.1, 1.5, traits)
        traits_seen = torch.tanh(days_seen.mean(1) @ law.T) + hard * 0.3 * torch.randn(nests, traits, generator=g)
        self.train = TensorDataset(days_seen, traits_seen)

    def train_dataloader(self) -> DataLoader:
        return DataLoader(self.train, self.batch, shuffle=True, drop_last=True)
