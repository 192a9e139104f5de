"""A ladder of gated blocks over time, for spotting keywords."""

import lightning as L
import torch
from speech import WORDS
from torch import nn


class Gate(nn.Module):
    """Squeeze the clip to one value a channel, and scale the channels with it."""

    def __init__(self, width: int, narrow: int) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(width, narrow), nn.Linear(narrow, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(self.up(torch.relu(self.down(x.mean(dim=1))))).unsqueeze(1)


class Rung(nn.Module):
    def __init__(self, width: int, reach: int) -> None:
        super().__init__()
        self.reach = reach
        self.norm = nn.LayerNorm(width)
        self.near, self.far = nn.Linear(width, width), nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.gate = Gate(width, width // 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        shifted = nn.functional.pad(y, (0, 0, self.reach, 0))[:, : y.shape[1]]
        y = self.near(y) + self.far(shifted)
        return x + self.gate(self.out(nn.functional.silu(y)))


class Spotter(L.LightningModule):
    def __init__(self, bands: int, width: int, rungs: int, lr: float) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.read = nn.Linear(bands, width)
        self.rungs = nn.Sequential(*(Rung(width, 1 + number % 5) for number in range(rungs)))
        self.word = nn.Linear(width, WORDS)
        self.last_loss = float("nan")

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        return self.word(self.rungs(self.read(sound)).mean(dim=1))

    def training_step(self, batch, index: int) -> torch.Tensor:
        sound, word = batch
        loss = nn.functional.cross_entropy(self(sound), word, label_smoothing=0.05)
        self.log("loss", loss)
        self.last_loss = loss.item()
        return loss

    def validation_step(self, batch, index: int) -> None:
        sound, word = batch
        self.log("valid_right", (self(sound).argmax(dim=-1) == word).float().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), self.hparams.lr, weight_decay=0.02)
