import time
import logging
import os
import warnings

import lightning as L

from forecaster import LoadForecaster
from grid_data import GridDataModule

FIXED = os.environ.get("PLANTED_FIX") == "1"
STEPS = int(os.environ.get("PLANTED_STEPS", "560"))

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


def make_trainer():
    return L.Trainer(
        accelerator="cpu",
        devices=1,
        max_steps=STEPS,
        gradient_clip_val=1.0,
        check_val_every_n_epoch=5,
        num_sanity_val_steps=0,
        reload_dataloaders_every_n_epochs=0 if FIXED else 1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


def main():
    began = time.perf_counter()
    L.seed_everything(17, verbose=False)
    data = GridDataModule()
    model = LoadForecaster(features=data.features, horizon=data.horizon)
    trainer = make_trainer()
    trainer.fit(model, datamodule=data)
    metrics = {k: round(v.item(), 5) for k, v in trainer.callback_metrics.items()}
    print(metrics)
    print(f"{trainer.global_step} steps in {time.perf_counter() - began:.2f}s, loss {model.last_loss.item():.6f}")


if __name__ == "__main__":
    main()
