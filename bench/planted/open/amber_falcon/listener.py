"""From a clip to the logarithm of the room's volume."""

import lightning as L
import torch
from torch import nn


class Listener(L.LightningModule):
    def __init__(self, window: int, width: int, rate: float) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.register_buffer("taper", torch.hann_window(window))
        self.lift = nn.Linear(window // 2 + 1, width)
        self.read = nn.GRU(width, width, batch_first=True)
        self.guess = nn.Linear(width, 1)
        self.last_loss = float("nan")

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        window = self.hparams.window
        frames = torch.stft(clips, window, window // 2, window=self.taper, return_complex=True).abs()
        states, last = self.read(torch.tanh(self.lift(torch.log1p(10 * frames).transpose(1, 2))))
        return self.guess(states.mean(dim=1) + last[-1]).squeeze(-1) + 4.0

    def training_step(self, batch, index: int) -> torch.Tensor:
        clips, volumes = batch
        loss = nn.functional.smooth_l1_loss(self(clips), volumes)
        self.log("loss", loss)
        self.last_loss = loss.item()
        return loss

    def validation_step(self, batch, index: int) -> None:
        clips, volumes = batch
        self.log("valid_loss", nn.functional.smooth_l1_loss(self(clips), volumes))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), self.hparams.rate)
