"""Train the keyword spotter."""

import logging
import os
import tempfile
import warnings
from dataclasses import dataclass

import lightning as L
from gauges import Clock, Lines, Throughput
from lightning.pytorch.callbacks import ModelCheckpoint
from speech import Clips
from spotter import Spotter

warnings.filterwarnings("ignore")
for name in ("lightning.pytorch", "lightning.fabric"):
    logging.getLogger(name).setLevel(logging.ERROR)


@dataclass(frozen=True)
class Plan:
    clips: int = 1920
    held_out: int = 128
    frames: int = 48
    bands: int = 24
    batch_size: int = 32
    width: int = 72
    rungs: int = 4
    lr: float = 2e-3
    seed: int = 77
    steps: int = int(os.environ.get("PLANTED_STEPS", "170"))


def main(plan: Plan) -> None:
    L.seed_everything(plan.seed, verbose=False)
    data = Clips(plan.clips, plan.held_out, plan.frames, plan.bands, plan.batch_size, plan.seed)
    spotter = Spotter(plan.bands, plan.width, plan.rungs, plan.lr)
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        keep = ModelCheckpoint(folder, every_n_train_steps=80, save_weights_only=True)
        trainer = L.Trainer(
            accelerator="cpu", devices=1, max_steps=plan.steps, max_epochs=-1, logger=False, enable_progress_bar=False,
            enable_model_summary=False, num_sanity_val_steps=0, gradient_clip_val=1.0, log_every_n_steps=10,
            callbacks=[clock, Throughput(), Lines(10), keep], default_root_dir=folder,
        )  # fmt: skip
        trainer.fit(spotter, datamodule=data)
    print(f"{trainer.global_step} steps in {clock.seconds:.2f}s, loss {spotter.last_loss:.6f}")


if __name__ == "__main__":
    main(Plan())
