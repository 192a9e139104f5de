import time
import os
import warnings

import lightning as L
import torch
from torch import nn
from torch.nn import functional as F

from insight import CollapseWatch
from views import windows

warnings.filterwarnings("ignore")
STEPS = int(os.environ.get("PLANTED_STEPS", "300"))


class Encoder(nn.Sequential):
    def __init__(self, channels, width, dim):
        super().__init__(
            nn.Conv1d(channels, width, 7, stride=2, padding=3),
            nn.GroupNorm(4, width),
            nn.GELU(),
            nn.Conv1d(width, 2 * width, 5, stride=2, padding=2),
            nn.GroupNorm(4, 2 * width),
            nn.GELU(),
            nn.Conv1d(2 * width, 2 * width, 3, stride=2, padding=1),
            nn.GELU(),
            nn.AdaptiveAvgPool1d(2),
            nn.Flatten(),
            nn.Linear(4 * width, dim),
        )


class Contrast(L.LightningModule):
    def __init__(self, channels=6, width=32, dim=128, temperature=0.2, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = Encoder(channels, width, dim)
        self.projector = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))

    def training_step(self, batch, batch_idx):
        first, second = batch.unbind(1)
        h = self.encoder(torch.cat([first, second]))
        z = F.normalize(self.projector(h), dim=-1)
        a, b = z.chunk(2)
        logits = a @ b.T / self.hparams.temperature
        target = torch.arange(len(a), device=logits.device)
        loss = 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target))
        self.last = loss.detach()
        return {"loss": loss, "hidden": h.detach(), "z": z.detach()}

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=1e-4)


def main():
    began = time.perf_counter()
    L.seed_everything(83, verbose=False)
    trainer = L.Trainer(
        max_steps=STEPS,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[CollapseWatch(every=50)],
    )
    model = Contrast()
    trainer.fit(model, windows(2048, 96, seed=83))
    print(f"{trainer.global_step} steps in {time.perf_counter() - began:.2f}s, loss {model.last.item():.6f}")


if __name__ == "__main__":
    main()
