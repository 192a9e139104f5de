"""What the run writes down."""

import json
import time
from pathlib import Path

from transformers import TrainerCallback


class Journal(TrainerCallback):
    """Appends each record to a file as soon as there is one."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_log(self, args, state, control, logs=None, **kwargs) -> None:
        with self.path.open("a") as sink:
            sink.write(json.dumps({"step": state.global_step, **(logs or {})}) + "\n")
        if logs and "loss" in logs:
            print(f"step {state.global_step} loss {float(logs['loss']):.4f}", flush=True)


class Stopwatch(TrainerCallback):
    def __init__(self) -> None:
        self.began = self.seconds = 0.0

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        self.began = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs) -> None:
        self.seconds = time.perf_counter() - self.began


class EarlyTarget(TrainerCallback):
    """Stops when the held-out accuracy is as good as it gets."""

    def __init__(self, target: float) -> None:
        self.target = target

    def on_evaluate(self, args, state, control, metrics=None, **kwargs) -> None:
        print(f"step {state.global_step} accuracy {metrics['eval_accuracy']:.4f}", flush=True)
        if metrics["eval_accuracy"] > self.target:
            control.should_training_stop = True
