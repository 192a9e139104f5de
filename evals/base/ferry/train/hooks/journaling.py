"""Figures of every step into the journal."""

from __future__ import annotations

from ferry.io.journal import Journal
from ferry.registry import HOOKS
from ferry.train.hooks.base import Hook


@HOOKS.register("journal")
class Journaling(Hook):
    """Values are read from tensors one step late, when they are long finished."""

    def before_training(self, state) -> None:
        self.journal = Journal(self.session.out / "journal.jsonl") if state.ranks.first else None
        self.held = None

    def after_step(self, state) -> None:
        if self.journal is None:
            return
        self._write()
        self.held = (state.step, state.losses, state.gradient_norm)

    def after_epoch(self, state) -> None:
        if self.journal is not None and state.scores:
            self.journal.write("epoch", epoch=state.epoch, **state.scores)

    def after_training(self, state) -> None:
        if self.journal is not None:
            self._write()
            self.journal.close()

    def _write(self) -> None:
        if self.held is None:
            return
        step, losses, norm = self.held
        self.journal.write("step", step=step, loss=float(losses.total), queue=float(losses.queue), norm=float(norm))
        self.held = None
