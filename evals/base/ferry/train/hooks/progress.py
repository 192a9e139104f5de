"""A line on the terminal now and then."""

from __future__ import annotations

import time

import torch

from ferry.registry import HOOKS
from ferry.train.hooks.base import Hook, due


@HOOKS.register("progress")
class Progress(Hook):
    def before_training(self, state) -> None:
        self.began = time.monotonic()

    def after_step(self, state) -> None:
        if state.ranks.first and due(state.config.train.log_every, state.step):
            loss = torch.stack(list(state.recent)).mean()
            rate = state.samples / max(1e-9, time.monotonic() - self.began)
            print(
                f"step {state.step}/{state.total_steps} loss {float(loss):.4f} lr {state.scheduler.get_last_lr()[0]:.2e} {rate:.0f}/s",
                flush=True,
            )

    def after_epoch(self, state) -> None:
        if state.ranks.first and state.scores:
            shown = " ".join(f"{name} {value:.4f}" for name, value in sorted(state.scores.items()))
            print(f"epoch {state.epoch + 1}: {shown}", flush=True)
