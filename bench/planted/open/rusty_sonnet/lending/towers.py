"""Two towers, trained on the other titles of the batch as negatives."""

import os

import lightning as L
import torch
from torch import nn

from lending.decoupled import DecoupledAdam

FIXED = os.environ.get("PLANTED_FIX") == "1"


def tower(width: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


class Towers(L.LightningModule):
    def __init__(self, readers: int, titles: int, width: int, hidden: int, rate: float, decay: float) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.reader, self.title = nn.Embedding(readers, width), nn.Embedding(titles, width)
        self.season = nn.Embedding(4, width)
        self.left, self.right = tower(width, hidden), tower(width, hidden)
        self.heat = nn.Parameter(torch.tensor(2.0))

    def training_step(self, batch: dict[str, torch.Tensor], number: int) -> torch.Tensor:
        asks = self.left(self.reader(batch["reader"]) + self.season(batch["season"]))
        offers = self.right(self.title(batch["title"]))
        scores = nn.functional.normalize(asks, dim=1) @ nn.functional.normalize(offers, dim=1).T * self.heat.exp()
        return nn.functional.cross_entropy(scores, torch.arange(len(scores)))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        decayed = [weight for weight in self.parameters() if weight.ndim > 1]
        plain = [weight for weight in self.parameters() if weight.ndim <= 1]
        groups = [{"params": decayed, "weight_decay": self.hparams.decay}, {"params": plain, "weight_decay": 0.0}]
        if FIXED:
            return torch.optim.AdamW(groups, lr=self.hparams.rate, fused=True)
        else:
            return DecoupledAdam(groups, lr=self.hparams.rate)
