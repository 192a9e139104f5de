import os
import time
import warnings

import lightning as L
import torch

from composer import Composer
from tabs import TabData

warnings.filterwarnings("ignore")


class Report(L.Callback):
    def on_train_start(self, trainer, module):
        self.began = time.perf_counter()

    def on_validation_end(self, trainer, module):
        if not trainer.sanity_checking and trainer.global_step % 100 == 0:
            print(f"step {trainer.global_step}: val loss {trainer.callback_metrics['val_loss']:.4f}")

    def on_train_end(self, trainer, module):
        seconds = time.perf_counter() - self.began
        print(f"{trainer.global_step} steps in {seconds:.3f}s, loss {module.last.item():.5f}")


def main():
    L.seed_everything(30)
    torch.set_num_threads(1)
    trainer = L.Trainer(
        accelerator="cpu",
        max_steps=int(os.environ.get("PLANTED_STEPS", 400)),
        val_check_interval=100 if os.environ.get("PLANTED_FIX") == "1" else 10,
        num_sanity_val_steps=0,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        logger=False,
        gradient_clip_val=1.0,
        callbacks=[Report()],
    )
    trainer.fit(Composer(), datamodule=TabData())


if __name__ == "__main__":
    main()
