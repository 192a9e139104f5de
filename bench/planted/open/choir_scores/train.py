"""Train the harmoniser."""

import argparse
import logging
import os
import tempfile
import time
import warnings
from pathlib import Path

import lightning as L
import torch
from corpus import Corpus, Excerpts, write_corpus
from harmony import Harmoniser
from lightning.pytorch.callbacks import Callback
from torch.utils.data import DataLoader

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)


class Progress(Callback):
    """A line every few steps instead of the bar."""

    def __init__(self, every: int = 5) -> None:
        self.every, self.began = every, 0.0

    def on_train_start(self, trainer, module) -> None:
        self.began = time.perf_counter()

    def on_train_batch_end(self, trainer, module, outputs, batch, index) -> None:
        if trainer.global_step % self.every == 0:
            figures = {name: round(float(value), 4) for name, value in trainer.callback_metrics.items()}
            print(trainer.global_step, figures, flush=True)


class ChoirData(L.LightningDataModule):
    def __init__(self, path: Path, batch_size: int, length: int) -> None:
        super().__init__()
        self.path, self.batch_size, self.length = path, batch_size, length

    def setup(self, stage: str) -> None:
        corpus = Corpus(self.path)
        self.train, self.valid = Excerpts(corpus, True, self.length, 5), Excerpts(corpus, False, self.length, 6)

    def train_dataloader(self) -> DataLoader:
        return DataLoader(self.train, self.batch_size, shuffle=True, generator=torch.Generator().manual_seed(5), drop_last=True)

    def val_dataloader(self) -> DataLoader:
        return DataLoader(self.valid, self.batch_size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pieces", type=int, default=50)
    parser.add_argument("--length", type=int, default=48)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--width", type=int, default=224)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "150")))
    options = parser.parse_args()
    L.seed_everything(9, verbose=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.json"
        write_corpus(path, options.pieces, 9)
        module = Harmoniser(options.width, 2, options.lr)
        progress = Progress()
        trainer = L.Trainer(
            accelerator="cpu", devices=1, max_steps=options.steps, max_epochs=-1, logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=1.0, check_val_every_n_epoch=5,
            num_sanity_val_steps=0, callbacks=[progress], default_root_dir=folder,
        )  # fmt: skip
        trainer.fit(module, datamodule=ChoirData(path, options.batch_size, options.length))
        print(f"{trainer.global_step} steps in {time.perf_counter() - progress.began:.2f}s, loss {module.last_loss:.6f}")


if __name__ == "__main__":
    main()
