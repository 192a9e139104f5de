"""A variational autoencoder with Lightning: `python train.py`."""

import logging
import os
import time
import warnings

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

from tiles import GlazedTiles
from vae import TileVAE

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Timer(L.Callback):
    def on_train_start(self, trainer, module):
        self.begun = time.perf_counter()

    def on_train_end(self, trainer, module):
        self.seconds = time.perf_counter() - self.begun


def main() -> None:
    torch.set_num_threads(1)
    L.seed_everything(13, verbose=False)
    limit = int(os.environ.get("PLANTED_STEPS", 1400))
    timer, model = Timer(), TileVAE()
    keep = ModelCheckpoint(dirpath="kept", monitor="val_elbo", save_top_k=1, every_n_epochs=4)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=1,
        max_steps=limit,
        max_epochs=-1,
        check_val_every_n_epoch=4,
        num_sanity_val_steps=0,
        logger=False,
        callbacks=[timer, keep],
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, datamodule=GlazedTiles())
    print(f"{trainer.global_step} steps in {timer.seconds:.2f}s, loss {model.last:.6f}")


if __name__ == "__main__":
    main()
