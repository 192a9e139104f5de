"""Writes the facts about computing now and then, so that a killed process loses little.

A source is an object with `write()`, which writes its cumulative figures so far; the reader takes the newest, or the difference of two.
"""

from __future__ import annotations

import time

from ..guard import swallow
from ..phases.observer import Observer

FIRST_STEP = 5  # the first figures: what came before is start-up
EVERY_S = 2.0

_clock = time.monotonic


class Compute(Observer):
    """Asks its sources for their figures at a boundary, at most every two seconds, and at the end."""

    def __init__(self, sources: list) -> None:
        self._sources = sources
        self._next_s = float("inf")

    def on_boundary(self, step: int) -> None:
        """One comparison in most steps."""
        if step == FIRST_STEP or _clock() >= self._next_s:
            self._write()

    def on_exit(self) -> None:
        """The last figures."""
        self._write()

    def _write(self) -> None:
        self._next_s = _clock() + EVERY_S
        for source in self._sources:
            try:
                source.write()
            except Exception as error:
                swallow(f"write {type(source).__name__}", error)


def install(torch) -> Compute:
    """Install every observation of computing that this machine and program can have; one that fails is left out and counted."""
    from . import census, collector, compiles, memory, numerics, recompute, syncs, updates

    sources = []
    for part in (collector, compiles, memory, numerics, recompute, syncs, updates, census):
        try:
            source = part.install(torch)
            if source is not None:
                sources.append(source)
        except Exception as error:
            swallow(f"install {part.__name__}", error)
    return Compute(sources)
