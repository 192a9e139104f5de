"""Guess the size of a room from clicks heard in it."""

import argparse
import logging
import os
import time
import warnings

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback
from listener import Listener
from presets import preset
from rooms import Clicks
from torch.utils.data import DataLoader

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)


class Progress(Callback):
    def __init__(self, every: int) -> None:
        self.every, self.began, self.seconds = every, 0.0, 0.0

    def on_train_start(self, trainer, module) -> None:
        self.began = time.perf_counter()

    def on_train_batch_end(self, trainer, module, outputs, batch, index) -> None:
        if trainer.global_step % self.every == 0:
            print(f"step {trainer.global_step} loss {module.last_loss:.4f}", flush=True)

    def on_validation_end(self, trainer, module) -> None:
        print(f"step {trainer.global_step} valid {float(trainer.callback_metrics['valid_loss']):.4f}", flush=True)

    def on_train_end(self, trainer, module) -> None:
        self.seconds = time.perf_counter() - self.began


class RoomData(L.LightningDataModule):
    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        self.options = options

    def _loader(self, clips: int, seed: int, workers: int) -> DataLoader:
        options = self.options
        dataset = Clicks(clips, options.samples, options.rooms, seed)
        return DataLoader(
            dataset, options.batch, num_workers=workers, persistent_workers=workers > 0, prefetch_factor=4 if workers else None
        )

    def train_dataloader(self) -> DataLoader:
        return self._loader(self.options.clips, 11, self.options.workers)

    def val_dataloader(self) -> DataLoader:
        return self._loader(64, 12, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=int, default=128)
    parser.add_argument("--samples", type=int, default=2048)
    parser.add_argument("--rooms", type=int, default=320)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--preset", default="curriculum")
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "240")))
    options = parser.parse_args()
    L.seed_everything(11, verbose=False)
    module, progress = Listener(64, options.width, options.rate), Progress(20)
    settings = preset(options.preset, accelerator="cpu", devices=1, max_steps=options.steps, callbacks=[progress])
    trainer = L.Trainer(**settings)
    trainer.fit(module, datamodule=RoomData(options))
    print(f"{trainer.global_step} steps in {progress.seconds:.2f}s, loss {module.last_loss:.6f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
