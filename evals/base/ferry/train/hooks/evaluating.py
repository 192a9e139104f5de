"""Evaluates the averaged weights, at each epoch's end and every so many steps."""

from __future__ import annotations

import json
from contextlib import nullcontext

from ferry.registry import HOOKS
from ferry.train.hooks.base import Hook, due
from ferry.train.ranks import plain_model


@HOOKS.register("evaluation")
class Evaluation(Hook):
    """Every result is a line of `scores.jsonl`."""

    def before_training(self, state) -> None:
        if state.ranks.first:
            (self.session.out / "scores.jsonl").write_text("", encoding="utf-8")

    def after_step(self, state) -> None:
        if due(state.config.train.evaluate_every, state.step):
            self._evaluate(state)

    def after_epoch(self, state) -> None:
        if not due(state.config.train.evaluate_every, state.step):
            self._evaluate(state)

    def _evaluate(self, state) -> None:
        if state.ranks.first:
            averaged = state.average.applied(plain_model(state.model)) if state.average else nullcontext()
            with averaged:
                state.scores = self.session.scores()
            with (self.session.out / "scores.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": state.step, **state.scores}, sort_keys=True) + "\n")
            state.best = max(state.best, state.scores.get("accuracy", float("-inf")))
        state.ranks.wait()
