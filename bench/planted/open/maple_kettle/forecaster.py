import lightning as L
import torch
from torch import nn
import torch.nn.functional as F


class GatedBlock(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.Conv1d(channels, 2 * channels, 3, dilation=dilation)
        self.mix = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        a, b = self.conv(F.pad(x, (self.pad, 0))).chunk(2, dim=1)
        return x + self.mix(torch.tanh(a) * torch.sigmoid(b))


class LoadForecaster(L.LightningModule):
    def __init__(self, features, horizon, channels=16, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.inp = nn.Conv1d(features, channels, 1)
        self.blocks = nn.Sequential(*[GatedBlock(channels, 2**i) for i in range(4)])
        self.out = nn.Linear(channels, horizon)

    def forward(self, x):
        h = self.blocks(self.inp(x))
        return self.out(h[:, :, -1])

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.smooth_l1_loss(self(x), y)
        if self.global_step % 40 == 0:
            print(f"step {self.global_step:4d}  loss {loss.item():.6f}", flush=True)
        self.last_loss = loss.detach()
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_mae", F.l1_loss(self(x), y), batch_size=x.shape[0])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
