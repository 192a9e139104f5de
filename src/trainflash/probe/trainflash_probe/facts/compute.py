"""Writes the facts about computing now and then, so that a killed process loses little.

A source is an object with `write()`, which writes its cumulative figures so far; the reader takes the newest, or the difference of two.
"""

from __future__ import annotations

from ..guard import swallow
from ..phases.loop import loop
from ..phases.observer import Observer

FIRST_STEP = 5  # the first figures: what came before is start-up


class Compute(Observer):
    """Asks its sources for their figures after the first steps, now and then, and at the end."""

    def __init__(self, sources: list) -> None:
        self._sources = sources
        self._begun = False

    def on_boundary(self, step: int) -> None:
        """The first figures."""
        if step >= FIRST_STEP:
            loop.remove(self.on_boundary)
            self._begun = True
            self._write()

    def on_interval(self, step: int) -> None:
        """The figures so far."""
        if self._begun:
            self._write()

    def on_exit(self) -> None:
        """The last figures."""
        self._write()

    def _write(self) -> None:
        for source in self._sources:
            try:
                source.write()
            except Exception as error:
                swallow(f"write {type(source).__name__}", error)


def install(torch) -> Compute:
    """Install every observation of computing that this machine and program can have; one that fails is left out and counted."""
    from . import again, census, collector, compiles, memory, numerics, pure_work, recompute, sizes, starts, syncs, updates

    sources = []
    for part in (again, collector, compiles, memory, numerics, pure_work, recompute, sizes, starts, syncs, updates, census):
        try:
            source = part.install(torch)
            if source is not None:
                sources.append(source)
        except Exception as error:
            swallow(f"install {part.__name__}", error)
    return Compute(sources)
