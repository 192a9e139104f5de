"""Next-hour temperature of a mountain lake at each hour of a month, by a causal transformer, on Lightning."""

import os
import time
import warnings

import lightning as L
import torch
from lake import LakeData
from layers import Encoder
from torch import nn

torch.set_num_threads(1)
warnings.filterwarnings("ignore")


class Timer(L.Callback):
    def on_train_start(self, trainer, module):
        self.began = time.time()

    def on_train_end(self, trainer, module):
        self.seconds = time.time() - self.began


class Forecaster(L.LightningModule):
    def __init__(self, inputs, width=48):
        super().__init__()
        self.lift = nn.Linear(inputs, width)
        self.encoder = Encoder(width, depth=2, heads=4)
        self.head = nn.Linear(width, 2)
        self.smooth = None

    def forward(self, x):
        mean, raw = self.head(self.encoder(self.lift(x))).unbind(-1)
        return mean, nn.functional.softplus(raw) + 1e-3

    def training_step(self, batch, index):
        x, y = batch
        mean, scale = self(x)
        loss = (0.5 * ((y - mean) / scale) ** 2 + scale.log()).mean()
        value = loss.item()
        self.smooth = value if self.smooth is None else 0.95 * self.smooth + 0.05 * value
        if self.global_step % 10 == 0:
            print(f"hour model: step {self.global_step} loss {self.smooth:.4f} spread {scale.mean():.3f}", flush=True)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=2e-3, fused=True)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 100, 0.7), "interval": "step"},
        }


def main():
    L.seed_everything(31, verbose=False)
    timer = Timer()
    trainer = L.Trainer(
        max_steps=int(os.environ.get("PLANTED_STEPS", 330)),
        max_epochs=-1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=1.0,
        callbacks=[timer],
    )
    data = LakeData(batch_size=4)
    model = Forecaster(data.inputs)
    trainer.fit(model, data)
    print(f"{trainer.global_step} steps in {timer.seconds:.2f}s, loss {model.smooth:.4f}")


if __name__ == "__main__":
    main()
