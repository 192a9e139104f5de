"""The Lightning halves: data and model."""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, random_split

from .balance import effective_number
from .wings import Wings


class Cabinet(L.LightningDataModule):
    def __init__(self, specimens: int, side: int, classes: int, batch: int, beta: float, seed: int) -> None:
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage: str) -> None:
        h = self.hparams
        everything = Wings(h.specimens, h.side, h.classes, h.seed)
        self.train, self.kept = random_split(everything, [0.95, 0.05], torch.Generator().manual_seed(h.seed))
        self.weights = effective_number(self.train, h.beta)

    def train_dataloader(self) -> DataLoader:
        order = torch.Generator().manual_seed(self.hparams.seed)
        return DataLoader(self.train, self.hparams.batch, shuffle=True, generator=order, drop_last=True)


class Sorter(L.LightningModule):
    def __init__(self, classes: int, width: int, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.net = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2, padding=2), nn.GroupNorm(4, width), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.GroupNorm(4, 2 * width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(2 * width, 4 * width, 3, padding=1), nn.GroupNorm(4, 4 * width), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, classes),
        )  # fmt: skip
        self.latest = torch.tensor(float("nan"))

    def on_fit_start(self) -> None:
        self.weights = self.trainer.datamodule.weights

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], _: int) -> torch.Tensor:
        scans, names = batch
        loss = nn.functional.cross_entropy(self.net(scans), names, weight=self.weights)
        self.latest = loss.detach()
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), self.rate, fused=True)
