"""Keeps the average of the weights."""

from __future__ import annotations

from ferry.registry import HOOKS
from ferry.train.hooks.base import Hook
from ferry.train.ranks import plain_model


@HOOKS.register("ema")
class Ema(Hook):
    def after_step(self, state) -> None:
        state.average.update(plain_model(state.model))
