"""What is written about each evaluation: when, from which line of the owner's, over which batches, and whether gradients were recorded."""

from __future__ import annotations

import time

from .. import own
from ..environment import diagnose
from ..objects import is_tensor
from ..writer import fact


class EvaluationFacts:
    """Facts of one evaluation, from its begin on."""

    def __init__(self) -> None:
        self._began = time.monotonic_ns()
        self._place = own.caller() if diagnose else None
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
        first = args[0] if args else next(iter(kwargs.values()), None)
        shape = first.shape if is_tensor(first) else None
        if shape and type(shape[0]) is int:  # a tensor while jit traces
            self._batch_size = max(self._batch_size or 0, int(shape[0]))
        if loader >= 0:
            self._about.setdefault("loader", loader)

    def write(self) -> None:
        """The evaluation is over."""
        fact("eval", t=self._began, at=self._place, batches=self._batches, batch_size=self._batch_size, grad=self._grad, **self._about)
