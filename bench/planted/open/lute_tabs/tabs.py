"""Lute tablature as tokens: course and fret, with the rhythm flags between."""

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

VOCAB = 6 * 9 + 8


def pieces(count: int, length: int, seed: int) -> torch.Tensor:
    g = torch.Generator().manual_seed(seed)
    hand = torch.randint(0, 9, (count, 1), generator=g)
    walk = torch.randint(-1, 2, (count, length), generator=g).cumsum(1)
    fret = (hand + walk).remainder(9)
    course = torch.randint(0, 6, (count, length), generator=g)
    course[:, 1:] = torch.where(torch.rand(count, length - 1, generator=g) < 0.6, course[:, :-1], course[:, 1:])
    tokens = course * 9 + fret
    flags = torch.rand(count, length, generator=g) < 0.2
    return torch.where(flags, 54 + hand.remainder(8).expand_as(tokens), tokens)


class TabData(L.LightningDataModule):
    def __init__(self, batch: int = 16, length: int = 65):
        super().__init__()
        self.batch, self.length = batch, length

    def setup(self, stage: str) -> None:
        self.train = TensorDataset(pieces(3200, self.length, 1))
        self.held_out = TensorDataset(pieces(320, self.length, 2))

    def train_dataloader(self):
        return DataLoader(self.train, self.batch, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.held_out, 2 * self.batch)
