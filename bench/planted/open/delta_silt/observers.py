"""What is watched while the mapper learns."""

import os

import torch
from cartography import islands, overlap
from scenes import CLASSES
from transformers import Trainer, TrainerCallback


class MapTrainer(Trainer):
    """Keeps the maps of the last batch for the callbacks."""

    predicted: torch.Tensor | None = None
    truth: torch.Tensor | None = None
    last_loss: float = float("nan")

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(**inputs)
        if model.training:
            self.predicted, self.truth = outputs["logits"].detach().argmax(1), inputs["labels"]
            self.last_loss = outputs["loss"].item()
        return (outputs["loss"], outputs) if return_outputs else outputs["loss"]


class Fragmentation(TrainerCallback):
    """Speckled maps are useless to the planners: how many islands does a predicted map have?"""

    def __init__(self) -> None:
        self.trainer: MapTrainer | None = None
        self.per_map = 0.0

    def on_step_end(self, args, state, control, **kwargs):
        if os.environ.get("PLANTED_FIX") == "1":
            due = state.global_step % args.logging_steps == 0
        else:
            due = self.trainer.predicted is not None
        if due:
            charts = self.trainer.predicted.tolist()
            self.per_map = sum(islands(chart) for chart in charts) / len(charts)

    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs is not None:
            logs["islands"] = round(self.per_map, 1)


class Overlap(TrainerCallback):
    """A running mean of the overlap of each class on the batches seen."""

    def __init__(self, decay: float = 0.9) -> None:
        self.trainer: MapTrainer | None = None
        self.decay, self.mean = decay, torch.zeros(len(CLASSES))

    def on_step_end(self, args, state, control, **kwargs):
        now = overlap(self.trainer.predicted, self.trainer.truth, len(CLASSES))
        self.mean = self.decay * self.mean + (1 - self.decay) * now

    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs is not None:
            logs.update({f"iou_{name}": round(float(value), 3) for name, value in zip(CLASSES, self.mean, strict=True)})


class Table(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        print(state.global_step, {name: round(float(value), 4) for name, value in (logs or {}).items()}, flush=True)
