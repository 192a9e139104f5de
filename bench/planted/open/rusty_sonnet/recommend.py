"""Who would borrow what?"""

import logging
import os
import time
import warnings

import lightning as L
import torch
from lending.loans import LoanData
from lending.towers import Towers

READERS, TITLES = 24_000, 36_000


class Tally(L.Callback):
    def __init__(self, every: int) -> None:
        self.every = every

    def on_train_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        self.began = time.perf_counter()

    def on_train_batch_end(self, trainer: L.Trainer, module: L.LightningModule, outputs, batch, number: int) -> None:
        self.loss = outputs["loss"]
        if trainer.global_step % self.every == 0:
            print(f"step {trainer.global_step} loss {self.loss.item():.4f}", flush=True)

    def on_train_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        print(f"{trainer.global_step} steps in {time.perf_counter() - self.began:.2f} s, loss {self.loss.item():.6f}")


def main() -> None:
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")
    L.seed_everything(31, verbose=False)
    data = LoanData(batch=704, readers=READERS, titles=TITLES, loans=200_000, subjects=60, seed=31)
    module = Towers(READERS, TITLES, width=48, hidden=128, rate=2e-3, decay=0.01)
    trainer = L.Trainer(
        accelerator="cpu",
        max_steps=int(os.environ.get("PLANTED_STEPS", 480)),
        callbacks=[Tally(50)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    torch.manual_seed(31)
    trainer.fit(module, datamodule=data)


if __name__ == "__main__":
    main()
