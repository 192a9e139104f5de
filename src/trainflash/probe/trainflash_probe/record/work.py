"""What a step does, seen in some steps of timed and of recorded runs alike: a program that trains otherwise while it is timed is found out.

One JSON line for each step looked at, in `work-<pid>.jsonl`: root forwards with gradients, their samples and input elements, backward
calls, and the losses as they reach backward. Looked at are the first steps and then a scattered eighth; in all others nothing of this
runs. Nothing is copied from a device before the program ends.
"""

from __future__ import annotations

import json
import os

from .. import process
from ..objects import is_tensor
from ..phases.loop import loop
from ..phases.observer import Observer
from .values import dry_run

FIRST = 24
ONE_IN = 8
_FLUSH = 32  # lines
_MOST = 4000


def looked_at(step):
    """Whether the step after `step` complete ones is looked at; scattered, so that no period of the program hides from it."""
    return step < FIRST or (step * 2654435761 >> 7) % ONE_IN == 0


def next_looked_at(step):
    """The first number of complete steps after `step` whose next step is looked at."""
    return next(later for later in range(step + 1, step + 64 * ONE_IN) if looked_at(later))


class Work(Observer):
    """Listens to forwards and backwards only in the steps that are looked at."""

    def __init__(self, directory):
        self._directory = directory
        self._lines: list = []
        self._written = 0
        self._open = True  # whoever adds an observer lets it listen
        self._begin(0)
        loop.call_at(1, self._at_boundary)
        os.register_at_fork(after_in_child=self._forked)

    def on_forward(self, module, args, kwargs):
        if not loop.fed_by_forward or loop.evaluating:
            return
        self._forwards += 1
        for value in (*args, *kwargs.values()):
            if is_tensor(value) and value.dim():
                self._samples += int(value.shape[0])
                self._elements += int(value.numel())

    def on_backward(self, tensors, grad_tensors):
        self._backwards += 1
        for tensor in tensors:
            if tensor.numel() == 1 and not dry_run(tensor):
                plain = tensor.detach()
                self._losses.append(float(plain).hex() if plain.device.type == "cpu" else plain.clone())

    def _at_boundary(self):
        step = loop.steps
        if self._open:
            self._lines.append((self._step, self._forwards, self._samples, self._elements, self._backwards, self._losses))
            if len(self._lines) >= _FLUSH and all(isinstance(loss, str) for line in self._lines for loss in line[5]):
                self._flush()
        wanted = looked_at(step) and self._written + len(self._lines) < _MOST
        if wanted and not self._open:
            loop.on_forward.append(self.on_forward)
            loop.on_backward.append(self.on_backward)
        elif self._open and not wanted:
            loop.remove(self.on_forward, self.on_backward)
        self._begin(step)
        self._open = wanted
        loop.call_at(step + 1 if wanted else next_looked_at(step), self._at_boundary)

    def on_exit(self):
        self._flush()

    def _begin(self, step):
        self._step, self._forwards, self._samples, self._elements, self._backwards, self._losses = step, 0, 0, 0, 0, []

    def _forked(self):
        self._lines, self._written = [], 0

    def _flush(self):
        if not self._lines:
            return
        rank = process.rank()
        text = "".join(
            json.dumps(
                {
                    "rank": rank, "step": step, "forwards": forwards, "samples": samples, "elements": elements, "backwards": backwards,
                    "losses": [loss if isinstance(loss, str) else float(loss).hex() for loss in losses],
                }
            )
            + "\n"
            for step, forwards, samples, elements, backwards, losses in self._lines
        )  # fmt: skip
        self._written += len(self._lines)
        self._lines = []
        with open(os.path.join(self._directory, f"work-{os.getpid()}.jsonl"), "a", encoding="ascii") as file:
            file.write(text)
