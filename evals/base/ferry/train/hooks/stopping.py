"""Stops when the accuracy has not risen for some epochs, or when the loss is no number."""

from __future__ import annotations

import math

from ferry.registry import HOOKS
from ferry.train.hooks.base import Hook


@HOOKS.register("early_stop")
class EarlyStop(Hook):
    def before_training(self, state) -> None:
        self.best, self.waited = float("-inf"), 0

    def after_epoch(self, state) -> None:
        score = state.scores.get("accuracy", float("-inf"))
        if score > self.best:
            self.best, self.waited = score, 0
        else:
            self.waited += 1
        patience = state.config.train.patience
        state.stop = bool(patience) and self.waited >= patience


@HOOKS.register("guard")
class Guard(Hook):
    def after_epoch(self, state) -> None:
        if state.scores and not math.isfinite(state.scores["loss"]):
            raise FloatingPointError(f"the validation loss is no number at step {state.step}")
