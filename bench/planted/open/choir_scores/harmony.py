"""The Lightning module."""

import lightning as L
import torch
from corpus import PITCHES, VOICES
from torch import nn


class Harmoniser(L.LightningModule):
    def __init__(self, width: int, layers: int, lr: float) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.notes = nn.ModuleList(nn.Embedding(PITCHES, width // VOICES) for _ in range(VOICES))
        self.memory = nn.GRU(width, width, layers, batch_first=True)
        self.heads = nn.ModuleList(nn.Linear(width, PITCHES) for _ in range(VOICES))
        self.last_loss = float("nan")

    def forward(self, chords: torch.Tensor) -> torch.Tensor:
        x = torch.cat([embed(chords[..., voice]) for voice, embed in enumerate(self.notes)], dim=-1)
        states, _ = self.memory(x)
        return torch.stack([head(states) for head in self.heads], dim=2)

    def _loss(self, batch) -> tuple[torch.Tensor, torch.Tensor]:
        before, after = batch
        scores = self(before)
        return nn.functional.cross_entropy(scores.flatten(0, 2), after.flatten()), (scores.argmax(-1) == after).float().mean()

    def training_step(self, batch, index: int) -> torch.Tensor:
        loss, right = self._loss(batch)
        self.log_dict({"loss": loss, "right": right}, prog_bar=True)
        self.last_loss = loss.item()
        return loss

    def validation_step(self, batch, index: int) -> None:
        loss, right = self._loss(batch)
        self.log_dict({"valid_loss": loss, "valid_right": right})

    def on_before_optimizer_step(self, optimizer) -> None:
        norms = [p.grad.norm() for p in self.parameters() if p.grad is not None]
        self.log("grad_norm", torch.stack(norms).norm())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), self.hparams.lr)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=400)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}
