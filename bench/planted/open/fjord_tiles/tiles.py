"""Satellite-like tiles with a coast line; land is class 1, ice class 2."""

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset


def draw(count: int, side: int, seed: int) -> TensorDataset:
    g = torch.Generator().manual_seed(seed)
    coarse = torch.randn(count, 2, 5, 5, generator=g)
    field = torch.nn.functional.interpolate(coarse, size=(side, side), mode="bilinear", align_corners=True)
    land, ice = field[:, 0] > 0.2, (field[:, 1] > 0.6)
    mask = land.long() + (land & ice).long()
    colour = torch.tensor([[0.1, 0.2, 0.6], [0.3, 0.5, 0.2], [0.9, 0.9, 1.0]])
    picture = colour[mask].permute(0, 3, 1, 2) + 0.25 * torch.randn(count, 3, side, side, generator=g)
    return TensorDataset(picture.contiguous(), mask)


class Tiles(L.LightningDataModule):
    def __init__(self, settings):
        super().__init__()
        self.settings = settings

    def setup(self, stage=None):
        s = self.settings
        self.train_set = draw(s.train_tiles, s.side, seed=1)
        self.held_out = draw(s.held_out_tiles, s.side, seed=2)

    def train_dataloader(self):
        generator = torch.Generator().manual_seed(self.settings.seed)
        return DataLoader(self.train_set, batch_size=self.settings.batch, shuffle=True, drop_last=True, generator=generator)

    def val_dataloader(self):
        return DataLoader(self.held_out, batch_size=self.settings.batch)
