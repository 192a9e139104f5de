"""Coast lines with Lightning. python train.py"""

import logging
import os
import time
import warnings

import lightning as L
import torch

from coast import Coast
from settings import Settings
from tiles import Tiles

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Stopwatch(L.Callback):
    def on_train_start(self, trainer, module):
        self.begun = time.perf_counter()

    def on_train_end(self, trainer, module):
        self.seconds = time.perf_counter() - self.begun


def main():
    torch.set_num_threads(1)
    settings = Settings()
    L.seed_everything(settings.seed, verbose=False)
    limit = int(os.environ.get("PLANTED_STEPS", settings.max_steps))
    module, watch = Coast(settings), Stopwatch()
    trainer = L.Trainer(
        accelerator="cpu",
        devices=1,
        max_steps=limit,
        max_epochs=-1,
        val_check_interval=settings.held_out_every,
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=1.0,
        callbacks=[watch],
    )
    trainer.fit(module, datamodule=Tiles(settings))
    print(f"{trainer.global_step} steps in {watch.seconds:.2f}s, loss {module.last:.6f}")


if __name__ == "__main__":
    main()
