import logging
import os
import tempfile
import time
import warnings

import lightning as L

from petrel.callbacks import make_callbacks
from petrel.data import Tracks
from petrel.module import Forecaster

warnings.filterwarnings("ignore", message=".*does not have many workers.*")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)


def main() -> None:
    L.seed_everything(11, verbose=False)
    steps = int(os.environ.get("PLANTED_STEPS", 300))
    model = Forecaster()
    with tempfile.TemporaryDirectory() as folder:
        trainer = L.Trainer(
            accelerator="cpu",
            max_steps=steps,
            max_epochs=-1,
            callbacks=make_callbacks(folder),
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            num_sanity_val_steps=0,
        )
        start = time.perf_counter()
        trainer.fit(model, datamodule=Tracks())
        print(f"{trainer.global_step} steps in {time.perf_counter() - start:.2f} s, loss {model.last.item():.6f}")


if __name__ == "__main__":
    main()
