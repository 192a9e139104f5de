"""Ferry delay (minutes) from weather and timetable; Lightning."""

import os
import time
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
torch.set_num_threads(1)


class Crossings(L.LightningDataModule):
    def __init__(self, batch_size=64, val_rows=4096):
        super().__init__()
        self.batch_size, self.val_rows = batch_size, val_rows

    def setup(self, stage=None):
        g = torch.Generator().manual_seed(30)
        x = torch.randn(6400 + self.val_rows, 40, generator=g)
        y = x[:, :8].sum(1) * 0.3 + torch.relu(x[:, 9]) + 0.2 * torch.randn(len(x), generator=g)
        self.train_set = TensorDataset(x[:6400], y[:6400])
        self.val_set = TensorDataset(x[6400:], y[6400:])

    def train_dataloader(self):
        return DataLoader(self.train_set, self.batch_size, shuffle=True, generator=torch.Generator().manual_seed(31))

    def val_dataloader(self):
        return DataLoader(self.val_set, 128)


class Delay(L.LightningModule):
    def __init__(self, width=512, lr=3e-4):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(40, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
        )
        self.lr = lr
        self.last = None

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.l1_loss(self.net(x).squeeze(1), y)
        value = float(loss.detach())
        self.last = value if self.last is None else 0.95 * self.last + 0.05 * value
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_mae", (self.net(x).squeeze(1) - y).abs().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def main():
    L.seed_everything(3)
    steps = int(os.environ.get("PLANTED_STEPS", 1500))
    every = 100 if os.environ.get("PLANTED_FIX") == "1" else 10
    model = Delay()
    trainer = L.Trainer(
        max_steps=steps,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        val_check_interval=every,
        num_sanity_val_steps=0,
    )
    t = time.time()
    trainer.fit(model, datamodule=Crossings())
    print(f"{trainer.global_step} steps in {time.time() - t:.2f}s, loss {model.last:.4f}")


if __name__ == "__main__":
    main()
