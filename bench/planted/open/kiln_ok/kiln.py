"""Kiln temperature forecasting, Lightning with manual optimization (two heads, two optimizers)."""

import os
import time
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
torch.set_num_threads(1)


class Kiln(L.LightningModule):
    def __init__(self, ch=96):
        super().__init__()
        self.automatic_optimization = False
        self.trunk = nn.Sequential(
            nn.Conv1d(4, ch, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(ch, ch, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(ch, ch, 5, padding=2),
            nn.ReLU(),
        )
        self.mean, self.spread = nn.Linear(ch, 1), nn.Linear(ch, 1)
        self.recent = None

    def training_step(self, batch, batch_idx):
        first, second = self.optimizers()
        x, y = batch
        h = self.trunk(x)[..., -1]
        mu = self.mean(h).squeeze(1)
        sigma = nn.functional.softplus(self.spread(h.detach()).squeeze(1)) + 0.05
        loss = nn.functional.mse_loss(mu, y) + nn.functional.gaussian_nll_loss(mu.detach(), y, sigma**2)
        first.zero_grad()
        second.zero_grad()
        self.manual_backward(loss)
        first.step()
        second.step()
        value = float(loss.detach())
        self.recent = value if self.recent is None else 0.9 * self.recent + 0.1 * value

    def configure_optimizers(self):
        body = [*self.trunk.parameters(), *self.mean.parameters()]
        return torch.optim.Adam(body, lr=5e-4, fused=True), torch.optim.Adam(self.spread.parameters(), lr=1e-3)


def firings(n=2400):
    g = torch.Generator().manual_seed(90)
    x = torch.randn(n, 4, 96, generator=g).cumsum(2) / 8
    return TensorDataset(x, x[:, 0, -1] + 0.5 * (x[:, 1, -1] - x[:, 1, -5]))


def main():
    L.seed_everything(0)
    steps = int(os.environ.get("PLANTED_STEPS", 600))
    model = Kiln()
    trainer = L.Trainer(
        max_steps=2 * steps,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    t0 = time.time()
    trainer.fit(model, DataLoader(firings(), batch_size=32, shuffle=True, drop_last=True))
    print(f"{trainer.global_step // 2} steps in {time.time() - t0:.2f}s, loss {model.recent:.4f}")


if __name__ == "__main__":
    main()
