"""python run.py: fits formation energies of random alloys."""

import logging
import time
import warnings

import lightning as L
import torch
from torch.utils.data import DataLoader

import options as opts
from batching import Joiner
from crystals import Crystals
from lit import LitEnergy


class Stopwatch(L.Callback):
    def on_train_start(self, trainer, module):
        self.began = time.time()

    def on_train_end(self, trainer, module):
        self.seconds = time.time() - self.began


def main():
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    options = opts.read()
    L.seed_everything(options.seed)
    crystals = Crystals(options, options.seed)
    loader = DataLoader(
        crystals,
        batch_size=options.loader.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=options.loader.workers,
        collate_fn=Joiner(options.loader.packed),
        generator=torch.Generator().manual_seed(options.seed),
    )
    module = LitEnergy(options)
    watch = Stopwatch()
    trainer = L.Trainer(
        max_steps=options.max_steps,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[watch],
    )
    trainer.fit(module, loader)
    print(f"{trainer.global_step} steps in {watch.seconds:.3f}s, loss {module.last:.6f}")


if __name__ == "__main__":
    main()
