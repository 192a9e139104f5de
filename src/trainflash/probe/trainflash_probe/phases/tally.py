"""Figures that are added up by the owner's line while the program runs."""

from __future__ import annotations

from ..writer import fact, is_open
from .observer import Observer


class Tally(Observer):
    """Sums by key, written as the fact `name` now and then and at exit; a reader takes the newest. Keys beyond `most` are not counted."""

    def __init__(self, name: str, most: int) -> None:
        self.name, self.most = name, most
        self.sums: dict = {}  # (place or None, what) -> [how often, amounts added up]
        self._changed = False

    def add(self, place, what: str, *amounts: int) -> None:
        """One more of `what` at `place`, [file, line, function] of the owner's or None."""
        key = (None if place is None else tuple(place), what)
        sums = self.sums.get(key)
        if sums is None:
            if len(self.sums) >= self.most:
                return
            sums = self.sums[key] = [0] * (1 + len(amounts))
        for i, amount in enumerate((1, *amounts)):
            sums[i] += amount
        self._changed = True

    def on_interval(self, step: int) -> None:
        """Write what has changed."""
        self.on_exit()

    def on_exit(self) -> None:
        """Write what has changed."""
        if self._changed and is_open():
            self._changed = False
            fact(self.name, lines=[[place, what, *sums] for (place, what), sums in self.sums.items()])
