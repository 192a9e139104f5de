"""Train the classifier of clouds."""

import argparse
import logging
import os
import tempfile
import warnings

import lightning as L
from edges import EdgeConv, Stage
from helpers import GradientWatch, Lean, Lines
from net import CloudNet
from shapes import SHAPES, Clouds

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
FIXED = os.environ.get("PLANTED_FIX") == "1"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clouds", type=int, default=600)
    parser.add_argument("--points", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--neighbours", type=int, default=10)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "200")))
    options = parser.parse_args()
    L.seed_everything(41, verbose=False)
    lines = Lines()
    if FIXED:
        callbacks = [lines, GradientWatch()]
    else:
        callbacks = [lines, GradientWatch(), Lean(Stage, EdgeConv)]
    module = CloudNet((20, 32), options.neighbours, len(SHAPES), options.lr)
    with tempfile.TemporaryDirectory() as folder:
        trainer = L.Trainer(
            accelerator="cpu",
            devices=1,
            max_steps=options.steps,
            max_epochs=-1,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            gradient_clip_val=1.0,
            num_sanity_val_steps=0,
            callbacks=callbacks,
            default_root_dir=folder,
        )
        trainer.fit(module, datamodule=Clouds(options.clouds, options.points, options.batch_size, 41))
    print(f"{trainer.global_step} steps in {lines.seconds:.2f}s, loss {module.last_loss:.6f}")


if __name__ == "__main__":
    main()
