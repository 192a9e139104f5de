"""The Lightning module: which shape is a cloud?"""

import lightning as L
import torch
from edges import Stage
from torch import nn


class CloudNet(L.LightningModule):
    def __init__(self, widths: tuple[int, ...], k: int, classes: int, lr: float) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.stages = nn.ModuleList(Stage(a, b, k) for a, b in zip((3, *widths), widths))
        self.join = nn.Linear(sum(widths), 64)
        self.head = nn.Sequential(nn.GELU(), nn.Linear(64, 32), nn.GELU(), nn.Linear(32, classes))
        self.last_loss = float("nan")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for stage in self.stages:
            x = stage(x)
            kept.append(x)
        return self.head(self.join(torch.cat(kept, -1)).amax(1))

    def training_step(self, batch, index: int) -> torch.Tensor:
        clouds, labels = batch
        loss = nn.functional.cross_entropy(self(clouds), labels, label_smoothing=0.05)
        self.log("loss", loss, prog_bar=True)
        self.last_loss = loss.item()
        return loss

    def validation_step(self, batch, index: int) -> None:
        clouds, labels = batch
        self.log("right", (self(clouds).argmax(-1) == labels).float().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), self.hparams.lr, weight_decay=0.01)
