"""Activation checkpointing: who asks for it, how often, and how long forward work takes that is done again inside backward.

Under torch.compile the recomputation is part of the compiled graph, where it cannot be seen.
"""

from __future__ import annotations

import functools
import sys
import time

from .. import imports, own
from ..guard import swallow
from ..phases.loop import loop
from ..writer import fact
from .askers import asker

MAX_PLACES = 100

_clock = time.monotonic_ns


class Recomputations:
    """Calls of `checkpoint` by the line that calls it, and the time of the function inside backward."""

    def __init__(self) -> None:
        self.calls: dict = {}  # number of the place -> [calls, ns]
        self.places: list = []
        self.asked_at = None  # the owner's call of gradient_checkpointing_enable
        self._known: dict = {}  # (code, line) of the caller -> number of the place
        self._inside = False

    def wrap(self, original, is_compiling):
        """`torch.utils.checkpoint.checkpoint`, timed where it repeats work."""

        @functools.wraps(original)
        def checkpoint(function, *args, **kwargs):
            if is_compiling() or loop.in_bwd or loop.evaluating or not callable(function):
                return original(function, *args, **kwargs)
            try:
                entry = self._entry(sys._getframe(1))
                entry[0] += 1
            except Exception as error:
                swallow("checkpoint", error)
                return original(function, *args, **kwargs)
            return original(self._timed(function, entry), *args, **kwargs)

        return checkpoint

    def _timed(self, function, entry: list):
        def run(*args, **kwargs):
            if not loop.in_bwd or self._inside:
                return function(*args, **kwargs)
            self._inside = True
            began = _clock()
            try:
                return function(*args, **kwargs)
            finally:
                entry[1] += _clock() - began
                self._inside = False

        return run

    def _entry(self, frame) -> list:
        key = (frame.f_code, frame.f_lineno)
        number = self._known.get(key)
        if number is None:
            place = asker(frame)
            if place in self.places or len(self.places) >= MAX_PLACES:
                number = self.places.index(place) if place in self.places else 0
            else:
                number = len(self.places)
                self.places.append(place)
                self.calls[number] = [0, 0]
            self._known[key] = number
        return self.calls[number]

    def enabled(self, original):
        """Hugging Face's `gradient_checkpointing_enable`: remember the owner's own call of it."""

        @functools.wraps(original)
        def gradient_checkpointing_enable(*args, **kwargs):
            try:
                frame = sys._getframe(1)
                if own.is_own(frame.f_code):
                    self.asked_at = own.place_of_frame(frame)
            except Exception as error:
                swallow("checkpoint", error)
            return original(*args, **kwargs)

        return gradient_checkpointing_enable

    def write(self) -> None:
        """Cumulative figures."""
        if self.places:
            rows = [[place or self.asked_at, *self.calls[number]] for number, place in enumerate(self.places)]
            fact("recompute", t=_clock(), steps=loop.steps + loop.pending, rows=rows)


def install(torch) -> Recomputations:
    """Wrap before the program takes the function out of its module."""
    source = Recomputations()

    def wrap(module) -> None:
        module.checkpoint = source.wrap(module.checkpoint, torch.compiler.is_compiling)

    def watch(module) -> None:
        owner = module.PreTrainedModel
        owner.gradient_checkpointing_enable = source.enabled(owner.gradient_checkpointing_enable)

    imports.after("torch.utils.checkpoint", wrap)
    imports.after("transformers.modeling_utils", watch)
    return source
