"""Fit the slot tagger."""

import argparse
import os
import tempfile
import warnings
from pathlib import Path

import torch
from callbacks import EarlyTarget, Journal, Stopwatch
from runtime import MeasuredArguments
from slots import ROWS, Orders
from tagger import Tagger, TaggerConfig
from transformers import Trainer, set_seed
from transformers.utils import logging

warnings.filterwarnings("ignore")
logging.set_verbosity_error()


class TaggerTrainer(Trainer):
    """Keeps the loss of the last step as a number."""

    final = float("nan")

    def training_step(self, *args, **kwargs) -> torch.Tensor:
        loss = super().training_step(*args, **kwargs)
        self.final = loss.item()
        return loss


def accuracy(prediction) -> dict[str, float]:
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=1600)
    parser.add_argument("--length", type=int, default=24)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "300")))
    options = parser.parse_args()
    set_seed(23)
    with tempfile.TemporaryDirectory() as folder:
        arguments = MeasuredArguments(
            output_dir=folder,
            max_steps=options.steps,
            per_device_train_batch_size=options.batch,
            learning_rate=options.rate,
            lr_scheduler_type="cosine",
            seed=23,
        )
        stopwatch = Stopwatch()
        trainer = TaggerTrainer(
            model=Tagger(TaggerConfig(rows=ROWS, width=options.width)),
            args=arguments,
            train_dataset=Orders(options.orders, options.length, seed=1),
            eval_dataset=Orders(128, options.length, seed=2),
            compute_metrics=accuracy,
            callbacks=[Journal(Path(folder) / "journal.jsonl"), EarlyTarget(1.0), stopwatch],
        )
        trainer.train()
        print(f"{trainer.state.global_step} steps in {stopwatch.seconds:.2f}s, loss {trainer.final:.6f}")


if __name__ == "__main__":
    main()
