"""Callbacks of the runs on ballads."""

import logging
import os
import time

import torch
from transformers import TrainerCallback

FIXED = os.environ.get("PLANTED_FIX") == "1"
log = logging.getLogger("ballads.trace")


class Clock(TrainerCallback):
    """Wall time of the training, and the loss of the last step."""

    def __init__(self) -> None:
        self.began = self.seconds = 0.0
        self.loss = float("nan")

    def on_train_begin(self, args, state, control, **kwargs):
        self.began = time.perf_counter()

    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs:
            self.loss = float(logs["loss"])

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.began


class GradientTrace(TrainerCallback):
    """Follows the gradients; `--verbose` shows them, otherwise only what is wrong with them is said."""

    def __init__(self) -> None:
        self.names: list[str] | None = None
        self.vanished = 0

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        if self.names is None:
            self.names = [name for name, p in model.named_parameters() if p.requires_grad]
        for name, parameter in model.named_parameters():
            if parameter.grad is None:
                continue
            self._note(state.global_step, name, parameter.grad)

    def _note(self, step: int, name: str, gradient: torch.Tensor) -> None:
        if not FIXED or log.isEnabledFor(logging.DEBUG):
            log.debug(f"step {step} {name} shape {tuple(gradient.shape)} values {gradient}")
        if not gradient.any():
            self.vanished += 1
            log.warning("the gradient of %s vanished", name)
