"""Which plants grow on which soil?"""

import tempfile
import time

import numpy as np
from modeling import ThicketConfig, ThicketModel
from settings import arguments
from surveys import Surveys
from transformers import EvalPrediction, Trainer, TrainerCallback, set_seed

SHAPE = {"depths": 48, "readings": 16, "plants": 40}


def judge(prediction: EvalPrediction) -> dict[str, float]:
    said, found = prediction.predictions > 0, prediction.label_ids > 0.5
    hits = np.logical_and(said, found).sum()
    return {"f1": float(2 * hits / max(said.sum() + found.sum(), 1))}


class Stopwatch(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.began = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.began


def main() -> None:
    set_seed(9)
    watch = Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=ThicketModel(ThicketConfig(SHAPE["readings"], SHAPE["plants"])),
            args=arguments(folder),
            train_dataset=Surveys(4000, **SHAPE, seed=1),
            eval_dataset=Surveys(600, **SHAPE, seed=2),
            compute_metrics=judge,
            callbacks=[watch],
        )
        result = trainer.train()
    print(f"{result.global_step} steps in {watch.seconds:.2f}s, loss {result.training_loss:.6f}")


if __name__ == "__main__":
    main()
