"""Python's garbage collector: how often it runs, how long, and who asks for it."""

from __future__ import annotations

import gc
import os
import sys
import time
from _thread import get_ident

from .. import own
from ..guard import swallow
from ..patches import like
from ..phases.loop import loop
from ..writer import fact

_COMPILES = os.path.join("torch", "_dynamo", "")

LONG_NS = 2_000_000  # of a collection whose place is told
MOST_PLACES = 64

_clock = time.monotonic_ns


class Collections:
    """Cumulative counts and times of all collections of this process; each stops every thread of the interpreter."""

    def __init__(self) -> None:
        self.counts = [0, 0, 0]
        self.ns = 0
        self.called: dict = {}  # the owner's place -> [calls, ns]
        self.struck: dict = {}  # (phase, the owner's place or None) -> [long collections, ns]
        self._began = 0

    def __call__(self, phase: str, info: dict) -> None:
        """What `gc.callbacks` calls."""
        if phase == "start":
            self._began = _clock()
        elif self._began:
            ns = _clock() - self._began
            self.ns += ns
            self._began = 0
            generation = info.get("generation", 0)
            if 0 <= generation < 3:
                self.counts[generation] += 1
            try:  # at the end of a deep recursion there may be no room for one call more
                if ns >= LONG_NS:
                    self._strikes(ns)
            except RecursionError:
                pass

    def _strikes(self, ns: int) -> None:
        """Where training stood when a long one came: what allocated last, which may be anything."""
        try:
            if loop.tid != get_ident() or len(self.struck) >= MOST_PLACES:
                return
            frame = own.own_frame(sys._getframe(2))
            if loop.evaluating or loop.eval_depth:
                phase = "Eval"
            elif loop.in_bwd:
                phase = "Bwd"
            elif loop.in_fwd:
                phase = "Fwd"
            else:
                phase = "Opt" if loop.in_opt else "Data" if loop.in_data else "Other"
            key = phase, None if frame is None else tuple(own.place_of_frame(frame))
            row = self.struck.setdefault(key, [0, 0])
            row[0] += 1
            row[1] += ns
        except Exception as error:
            swallow("collections", error)

    def wrap(self, original):
        """`gc.collect`, with the line that calls it noted."""

        @like(original)
        def collect(*args, **kwargs):
            began = _clock()
            try:
                return original(*args, **kwargs)
            finally:
                self._note(sys._getframe(1), _clock() - began)

        return collect

    def _note(self, frame, ns: int) -> None:
        """The owner's line that calls it, or calls a library that does; Dynamo, which collects before it compiles, has no such line."""
        try:
            frame = own.own_frame(frame, ends=lambda code: _COMPILES in code.co_filename)
            if frame is None:
                return
            entry = self.called.setdefault(tuple(own.place_of_frame(frame)), [0, 0])
            entry[0] += 1
            entry[1] += ns
        except Exception as error:
            swallow("gc.collect", error)

    def write(self) -> None:
        """Cumulative figures."""
        place = max(self.called, key=lambda key: self.called[key][1], default=None)
        called = sum(calls for calls, _ in self.called.values())
        fact(
            "gc",
            t=_clock(),
            counts=self.counts,
            ns=self.ns,
            called=called,
            at=place,
            struck=[[*key, *row] for key, row in self.struck.items()],
        )


def install(torch) -> Collections:
    """Listen, and wrap `gc.collect`."""
    source = Collections()
    gc.callbacks.append(source)
    gc.collect = source.wrap(gc.collect)
    return source
