"""Multi-task network on calls, with Lightning."""

import logging
import os
import time
import warnings

import torch
from lightning.pytorch import Callback, Trainer, seed_everything
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader

from module import Listener
from tasks import calls

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)


class Clock(Callback):
    def on_train_start(self, trainer, module):
        self.began = time.perf_counter()

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        self.last = outputs["loss"]
        if trainer.global_step % 50 == 0:
            print(f"{trainer.global_step}: {self.last.item():.4f}", flush=True)

    def on_train_end(self, trainer, module):
        self.seconds = time.perf_counter() - self.began


class Weights(Callback):
    """The widest unit of each head, once in a while."""

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        if index % 25 == 0:
            widest = {n: head[0].weight.norm(dim=1).max().item() for n, head in module.heads.items()}
            trainer.logger.log_metrics(widest, trainer.global_step)


def main():
    seed_everything(14)
    torch.set_num_threads(1)
    steps = int(os.environ.get("PLANTED_STEPS", 9000))
    clock = Clock()
    trainer = Trainer(
        max_steps=steps,
        max_epochs=-1,
        accelerator="cpu",
        logger=CSVLogger("logs", flush_logs_every_n_steps=200),
        callbacks=[clock, Weights(), ModelCheckpoint("kept", every_n_epochs=5)],
        gradient_clip_val=5.0,
        check_val_every_n_epoch=2,
        num_sanity_val_steps=0,
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=10,
    )
    train = DataLoader(calls(9600, 1), batch_size=64, shuffle=True, num_workers=0)
    held = DataLoader(calls(512, 2), batch_size=256)
    trainer.fit(Listener(), train, held)
    print(f"{steps} steps in {clock.seconds:.3f}s, loss {clock.last.item():.5f}")


if __name__ == "__main__":
    main()
