import logging
import os
import time
import warnings

import lightning as L

from data import HeatData
from model import QuantileForecaster

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

MAX_STEPS = int(os.environ.get("PLANTED_STEPS", 300))


class Progress(L.Callback):
    def on_train_start(self, trainer, module):
        self.start = time.perf_counter()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.global_step % 25 == 0:
            print(f"step {trainer.global_step} loss {module.last_loss.item():.4f}")

    def on_train_end(self, trainer, module):
        self.took = time.perf_counter() - self.start


def main():
    L.seed_everything(17)
    progress = Progress()
    trainer = L.Trainer(
        accelerator="cpu",
        max_steps=MAX_STEPS,
        max_epochs=-1,
        val_check_interval=150,
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
        gradient_clip_val=1.0,
        detect_anomaly=os.environ.get("PLANTED_FIX") != "1",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[progress],
    )
    model = QuantileForecaster()
    trainer.fit(model, datamodule=HeatData(seed=17))
    print(f"{trainer.global_step} steps in {progress.took:.2f} s, loss {model.last_loss.item():.6f}")


if __name__ == "__main__":
    main()
