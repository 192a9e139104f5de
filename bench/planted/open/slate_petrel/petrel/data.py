"""Flight tracks of sea birds: positions of the last hours, to tell the place an hour ahead."""

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset


def fly(birds: int, hours: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    turn = 0.15 * torch.randn(birds, hours + 1, generator=g).cumsum(1)
    speed = 0.5 + torch.rand(birds, 1, generator=g)
    steps = speed[..., None] * torch.stack([turn.cos(), turn.sin()], dim=-1)
    place = steps.cumsum(1)
    return place[:, :-1].flatten(1), place[:, -1] - place[:, -2]


class Tracks(L.LightningDataModule):
    def __init__(self, birds: int = 6000, hours: int = 24, batch_size: int = 64, seed: int = 3) -> None:
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage: str | None = None) -> None:
        hp = self.hparams
        self.train = TensorDataset(*fly(hp.birds, hp.hours, hp.seed))
        self.val = TensorDataset(*fly(512, hp.hours, hp.seed + 1))

    def train_dataloader(self) -> DataLoader:
        return DataLoader(self.train, self.hparams.batch_size, shuffle=True, drop_last=True)

    def val_dataloader(self) -> DataLoader:
        return DataLoader(self.val, 256)
