"""Statistics of weights and gradients, for those who look into a run."""

from __future__ import annotations

import json

import torch

from ferry.registry import HOOKS
from ferry.train.hooks.base import Hook
from ferry.train.ranks import plain_model


@HOOKS.register("watch")
class Watch(Hook):
    """Norms of all weights, at each epoch's end, into `weights.jsonl`."""

    def before_training(self, state) -> None:
        self.file = (self.session.out / "weights.jsonl").open("w", encoding="utf-8") if state.ranks.first else None

    @torch.no_grad()
    def after_epoch(self, state) -> None:
        if self.file is None:
            return
        norms = {name: float(parameter.norm()) for name, parameter in plain_model(state.model).named_parameters()}
        self.file.write(json.dumps({"epoch": state.epoch, "norms": norms}) + "\n")

    def after_training(self, state) -> None:
        if self.file is not None:
            self.file.close()
