"""Figures of a tagger, and the callback that keeps time."""

import time

import numpy as np
from transformers import EvalPrediction, TrainerCallback


def figures(prediction: EvalPrediction) -> dict[str, float]:
    guess, truth = prediction.predictions.argmax(-1), prediction.label_ids
    valid = truth != -100
    tagged = valid & (truth > 0)
    found = valid & (guess > 0)
    right = tagged & (guess == truth)
    precision, recall = right.sum() / max(found.sum(), 1), right.sum() / max(tagged.sum(), 1)
    return {
        "accuracy": float((guess == truth)[valid].mean()),
        "f1": float(2 * precision * recall / np.maximum(precision + recall, 1e-9)),
    }


class Timekeeper(TrainerCallback):
    """Remembers how long the steps took and prints the loss."""

    def __init__(self) -> None:
        self.marks: list[float] = []
        self.began = self.seconds = 0.0
        self.loss = float("nan")

    def on_train_begin(self, args, state, control, **kwargs):
        self.began = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        self.marks.append(time.perf_counter())

    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs:
            self.loss = float(logs["loss"])
            print(f"step {state.global_step} loss {self.loss:.4f}", flush=True)

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.began
