"""What is written about each evaluation: when, from which line of the owner's, over which batches, and whether gradients were recorded."""

from __future__ import annotations

import time

from ..environment import diagnose
from ..objects import is_tensor
from ..writer import fact
from . import stack

LOOKS = 4  # forwards of an evaluation whose callers are looked at: an ensemble has several lines, and a long evaluation none that are new


class EvaluationFacts:
    """Facts of one evaluation, from its begin on.

    Its place is where the innermost of the owner's functions stands, at its first forward, that ran at its begin already: a helper that
    only switches modes has returned by then.
    """

    def __init__(self) -> None:
        self._began = time.monotonic_ns()
        self._running = stack.running() if diagnose else []
        self._place = self._running[0].place if self._running else None
        self._forwards: dict = {}  # (file, line, function) that led to a forward, as an ordered set
        self._batches = 0
        self._batch_size = self._grad = None
        self._about: dict = {}

    def batch(self, grad: bool, args: tuple, kwargs: dict, loader: int) -> None:
        """One more forward of a network with parameters; `loader` is the loader that fed it, -1 where it is none or one for training."""
        self._batches += 1
        if self._grad is None:
            self._grad = grad
        if not diagnose:
            return
        if self._batches <= LOOKS:
            self._look()
        first = args[0] if args else next(iter(kwargs.values()), None)
        shape = first.shape if is_tensor(first) else None
        if shape and type(shape[0]) is int:  # a tensor while jit traces
            self._batch_size = max(self._batch_size or 0, int(shape[0]))
        if loader >= 0:
            self._about.setdefault("loader", loader)

    def _look(self) -> None:
        if self._batches == 1 and self._running:
            found, now = stack.innermost(self._running)
            if found is not None:
                self._place = now
            self._running = []
        self._forwards.update((tuple(each.place), None) for each in stack.running())

    def write(self) -> None:
        """The evaluation is over."""
        about = {**self._about, "forwards": [list(place) for place in self._forwards]} if self._forwards else self._about
        fact("eval", t=self._began, at=self._place, batches=self._batches, batch_size=self._batch_size, grad=self._grad, **about)
