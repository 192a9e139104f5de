"""Writes checkpoints, and the final one."""

from __future__ import annotations

from ferry.io.checkpoints import CheckpointStore
from ferry.registry import HOOKS
from ferry.train.hooks.base import Hook, due


@HOOKS.register("checkpoint")
class Checkpointing(Hook):
    def before_training(self, state) -> None:
        self.store = CheckpointStore(self.session.out / "checkpoints", state.config.train.keep_checkpoints)

    def after_step(self, state) -> None:
        if state.ranks.first and due(state.config.train.checkpoint_every, state.step):
            self.store.save(state.step, state.snapshot())

    def after_training(self, state) -> None:
        if state.ranks.first:
            self.store.save_final(state.snapshot())
