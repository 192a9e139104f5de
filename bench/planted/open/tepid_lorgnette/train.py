"""Convolutional VAE for cartoon faces, PyTorch Lightning."""

import os
import time
from pathlib import Path

import lightning as L
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FIX = os.environ.get("PLANTED_FIX") == "1"
STEPS = int(os.environ.get("PLANTED_STEPS", 480))
SIDE = 32


def draw_face(rng):
    s = SIDE * 4
    skin = tuple(int(v) for v in rng.integers(120, 240, 3))
    img = Image.new("RGB", (s, s), tuple(int(v) for v in rng.integers(20, 110, 3)))
    d = ImageDraw.Draw(img)
    cx, cy, w, h = s / 2 + rng.normal(0, 4), s / 2 + rng.normal(0, 4), rng.uniform(34, 48), rng.uniform(42, 56)
    d.ellipse((cx - w, cy - h, cx + w, cy + h), fill=skin)
    gap, r = rng.uniform(14, 22), rng.uniform(4, 9)
    for side in (-1, 1):
        x, y = cx + side * gap, cy - 12
        d.ellipse((x - r, y - r, x + r, y + r), fill="white")
        d.ellipse((x - r / 2, y - r / 2, x + r / 2, y + r / 2), fill="black")
    smile, mw = rng.uniform(-14, 14), rng.uniform(12, 26)
    box = (cx - mw, cy + 24 - abs(smile), cx + mw, cy + 24 + abs(smile) + 1)
    d.arc(box, *((0, 180) if smile > 0 else (180, 360)), fill=(150, 20, 30), width=5)
    return np.asarray(img.resize((SIDE, SIDE), Image.LANCZOS))


class Faces(L.LightningDataModule):
    def __init__(self, count=1500, held_out=64, batch_size=32, seed=8):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage=None):
        rng = np.random.default_rng(self.hparams.seed)
        n = self.hparams.count + self.hparams.held_out
        x = torch.from_numpy(np.stack([draw_face(rng) for _ in range(n)]))
        x = x.permute(0, 3, 1, 2).float().div(255).contiguous()
        self.train, self.held = x[: self.hparams.count], x[self.hparams.count :]

    def train_dataloader(self):
        return DataLoader(TensorDataset(self.train), self.hparams.batch_size, shuffle=True, drop_last=True)


class VAE(L.LightningModule):
    def __init__(self, latent=24, width=24, beta=0.5, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        w = width
        self.enc = nn.Sequential(
            nn.Conv2d(3, w, 4, 2, 1),
            nn.SiLU(),
            nn.Conv2d(w, 2 * w, 4, 2, 1),
            nn.SiLU(),
            nn.Conv2d(2 * w, 4 * w, 4, 2, 1),
            nn.SiLU(),
            nn.Flatten(),
            nn.Linear(4 * w * 16, 2 * latent),
        )
        self.dec = nn.Sequential(
            nn.Linear(latent, 4 * w * 16),
            nn.Unflatten(1, (4 * w, 4, 4)),
            nn.SiLU(),
            nn.ConvTranspose2d(4 * w, 2 * w, 4, 2, 1),
            nn.SiLU(),
            nn.ConvTranspose2d(2 * w, w, 4, 2, 1),
            nn.SiLU(),
            nn.ConvTranspose2d(w, 3, 4, 2, 1),
        )
        self.history = []

    def forward(self, x):
        return self.dec(self.enc(x).chunk(2, 1)[0]).sigmoid()

    def training_step(self, batch, batch_idx):
        (x,) = batch
        mean, logvar = self.enc(x).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        rec = F.binary_cross_entropy_with_logits(self.dec(z), x, reduction="sum") / len(x)
        kl = -0.5 * (1 + logvar - mean.square() - logvar.exp()).sum(1).mean()
        loss = (rec + self.hparams.beta * kl) / x[0].numel()
        self.history.append(loss.item())
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


class Gallery(L.Callback):
    """Originals above reconstructions, and the loss curve, as PNG."""

    def __init__(self, folder, every_n_steps):
        self.folder = Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.every_n_steps = every_n_steps

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        step = trainer.global_step
        if step % self.every_n_steps:
            return
        x = trainer.datamodule.held[:8]
        with torch.no_grad():
            y = pl_module(x)
        fig, axes = plt.subplots(3, 8, figsize=(10, 4))
        for row, images in zip(axes, (x, y)):
            for ax, img in zip(row, images):
                ax.imshow(img.permute(1, 2, 0).numpy())
                ax.axis("off")
        for ax in axes[2]:
            ax.axis("off")
        curve = fig.add_subplot(3, 1, 3)
        curve.plot(pl_module.history)
        curve.set_xlabel("step")
        fig.tight_layout()
        fig.savefig(self.folder / f"step_{step:05d}.png", dpi=110)
        plt.close(fig)


class Progress(L.Callback):
    def on_train_start(self, trainer, pl_module):
        self.start = time.perf_counter()

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.global_step % 40 == 0:
            print(f"step {trainer.global_step:4d}  loss {pl_module.history[-1]:.5f}")

    def on_train_end(self, trainer, pl_module):
        self.wall = time.perf_counter() - self.start


if __name__ == "__main__":
    L.seed_everything(8, verbose=False)
    progress = Progress()
    gallery = Gallery("gallery", every_n_steps=160 if FIX else 10)
    trainer = L.Trainer(
        max_steps=STEPS,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[progress, gallery],
    )
    model = VAE()
    trainer.fit(model, datamodule=Faces())
    print(f"{trainer.global_step} steps in {progress.wall:.1f} s, loss {model.history[-1]:.6f}")
