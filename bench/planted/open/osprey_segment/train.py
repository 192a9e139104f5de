"""Outline osprey nests."""

import argparse
import logging
import os
import tempfile
import time
import warnings

import lightning as L
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from module import NestFinder
from nests import Nests
from torch import Generator
from torch.utils.data import DataLoader

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)


class Printer(Callback):
    def __init__(self) -> None:
        self.began = 0.0

    def on_train_start(self, trainer, module) -> None:
        self.began = time.perf_counter()

    def on_train_batch_end(self, trainer, module, outputs, batch, index) -> None:
        if trainer.global_step % 4 == 0:
            print(f"step {trainer.global_step} loss {module.last_loss:.4f}", flush=True)

    def on_validation_end(self, trainer, module) -> None:
        print(f"epoch {trainer.current_epoch} iou {float(trainer.callback_metrics['valid_iou']):.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=192)
    parser.add_argument("--size", type=int, default=80)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "240")))
    options = parser.parse_args()
    L.seed_everything(55, verbose=False)
    train = DataLoader(
        Nests(options.pictures, options.size, 55, True), options.batch_size, shuffle=True, generator=Generator().manual_seed(55)
    )
    valid = DataLoader(Nests(16, 64, 56, False), 16)
    module, printer = NestFinder(options.width, options.lr), Printer()
    with tempfile.TemporaryDirectory() as folder:
        trainer = L.Trainer(
            accelerator="cpu", devices=1, max_steps=options.steps, max_epochs=-1, logger=False, enable_progress_bar=False,
            enable_model_summary=False, num_sanity_val_steps=0, check_val_every_n_epoch=4, default_root_dir=folder,
            callbacks=[printer, ModelCheckpoint(folder, monitor="valid_iou", mode="max", save_top_k=1)],
        )  # fmt: skip
        trainer.fit(module, train, valid)
    print(f"{trainer.global_step} steps in {time.perf_counter() - printer.began:.2f}s, loss {module.last_loss:.6f}")


if __name__ == "__main__":
    main()
