"""Traits of a brood from the days before it hatched."""

import os
import sys
import time
import warnings

import lightning.pytorch as pl
from aviary.balance import TraitBalance
from aviary.birds import Colonies
from aviary.module import Finch

warnings.filterwarnings("ignore")
SENSORS, TRAITS = 10, 14


class Clock(pl.Callback):
    def on_train_start(self, trainer, module) -> None:
        self.began = time.perf_counter()

    def on_train_end(self, trainer, module) -> None:
        loss, seconds = module.latest.mean().item(), time.perf_counter() - self.began
        print(f"{trainer.global_step} steps in {seconds:.2f}s, loss {loss:.6f}")


def main() -> int:
    pl.seed_everything(8, verbose=False)
    trainer = pl.Trainer(
        accelerator="cpu",
        max_steps=int(os.environ.get("PLANTED_STEPS", 1500)),
        callbacks=[TraitBalance(window=110, heat=0.5), Clock()],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Finch(SENSORS, TRAITS, width=48, rate=2e-3), Colonies(2400, 20, SENSORS, TRAITS, batch=32))
    return 0


if __name__ == "__main__":
    sys.exit(main())
