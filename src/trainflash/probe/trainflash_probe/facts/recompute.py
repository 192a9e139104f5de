"""Activation checkpointing: who asks for it, how often, and how long forward work takes that is done again inside backward.

Code of the owner's that switches gradients on inside a backward does it by hand: from there to the end of that block, or to the nested
backward, it computes a graph again.

Under torch.compile the recomputation is part of the compiled graph, where it cannot be seen.
"""

from __future__ import annotations

import sys
import time
from threading import get_ident

from .. import imports, inside, own
from ..guard import swallow
from ..patches import like, noted
from ..phases.loop import loop
from ..writer import fact
from .askers import asker

MAX_PLACES = 100
ENABLING = ("gradient_checkpointing_enable", "activation_checkpointing_enable")  # Hugging Face's names, older and newer
WRAPPING = "torch.distributed.algorithms._checkpoint.checkpoint_wrapper"
SETTINGS = ("gradient_checkpointing", "activation_checkpointing")

_clock = time.monotonic_ns


class Recomputations:
    """Calls of `checkpoint` by the line that calls it, and the time of the function inside backward."""

    def __init__(self) -> None:
        self.calls: dict = {}  # number of the place -> [calls, ns]
        self.places: list = []
        self.asked_at = None  # where the owner asked Hugging Face's classes for it
        self.wrapped_at: dict = {}  # code of a wrapping module's forward -> where the owner wrapped modules in it last
        self._watching = False
        self._known: dict = {}  # (code, line) of the caller -> number of the place
        self._inside = False
        self._by_hand = None  # entry of the place that recomputes by itself, and since when

    def entered(self, original, is_compiling, torch):
        """`enable_grad.__enter__`: the first one inside a backward has nested backwards end the time."""

        @like(original)
        def __enter__(manager):
            result = original(manager)
            if not is_compiling() and loop.in_bwd and not self._inside and self._by_hand is None and loop.tid == get_ident():
                try:
                    frame = sys._getframe(1)
                    if own.is_own(frame.f_code):
                        self._watch_backward(torch)
                        self._by_hand = self._entry(frame), _clock()
                except Exception as error:
                    swallow("recompute", error)
            return result

        return __enter__

    def end(self) -> None:
        """Wherever the time ends."""
        if self._by_hand is not None and loop.tid == get_ident():
            entry, began = self._by_hand
            self._by_hand = None
            entry[0] += 1
            entry[1] += _clock() - began

    def _watch_backward(self, torch) -> None:
        if not self._watching:
            self._watching = True
            for name in ("backward", "grad"):
                inside.hook(getattr(torch.autograd, name), self.end, None)

    def wrap(self, original, is_compiling):
        """`torch.utils.checkpoint.checkpoint`, timed where it repeats work."""

        @like(original)
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
            place = self.wrapped_at.get(frame.f_code) or asker(frame)
            if place in self.places or len(self.places) >= MAX_PLACES:
                number = self.places.index(place) if place in self.places else 0
            else:
                number = len(self.places)
                self.places.append(place)
                self.calls[number] = [0, 0]
            self._known[key] = number
        return self.calls[number]

    def enabled(self, original):
        """A model's method that switches it on: remember the owner's own call of it, else the call of a trainer that led here."""

        @like(original)
        def enable(*args, **kwargs):
            try:
                if own.is_own(sys._getframe(1).f_code) or self.asked_at is None:
                    self.asked_at = own.caller()
            except Exception as error:
                swallow("checkpoint", error)
            return original(*args, **kwargs)

        return enable

    def wraps(self, owner) -> None:
        """A module that recomputes what it holds: the line that put it around another one, and not the one that runs it, asks for that."""
        code = owner.forward.__code__

        def keep(place: list, *_args) -> None:
            self.wrapped_at[code] = place

        owner.__init__ = noted(owner.__init__, keep, source="checkpoint")

    def configured(self, original):
        """A trainer's settings: where the owner made them with recomputation switched on."""

        @like(original)
        def __post_init__(settings, *args, **kwargs):
            result = original(settings, *args, **kwargs)
            try:
                if any(getattr(settings, name, False) for name in SETTINGS):
                    self.asked_at = own.caller()
            except Exception as error:
                swallow("checkpoint", error)
            return result

        return __post_init__

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
        for name in ENABLING:
            if hasattr(owner, name):
                setattr(owner, name, source.enabled(getattr(owner, name)))

    def configure(module) -> None:
        owner = module.TrainingArguments
        owner.__post_init__ = source.configured(owner.__post_init__)

    manager, is_compiling = torch.enable_grad, torch.compiler.is_compiling
    manager.__enter__ = source.entered(manager.__enter__, is_compiling, torch)
    inside.hook(manager.__exit__, source.end, None)
    imports.after("torch.utils.checkpoint", wrap)
    imports.after(WRAPPING, lambda module: source.wraps(module.CheckpointWrapper))
    imports.after("transformers.modeling_utils", watch)
    imports.after("transformers.training_args", configure)
    return source
