"""Behind which of several backwards an update follows that the owner wrote, where no optimizer says so.

Without one each backward completes a step, and a window behind the wrong one shows no update. So the parameters are looked at in front of
each early backward: where they change once in so many, as often twice in a row, the next window opens where they change again.
"""

from __future__ import annotations

from ..guard import swallow
from .loop import loop
from .own_updates import Watched, leaves_of, nobody_else_updates

MOST_BACKWARDS = 512  # own: looked at, some 20 µs each; the parameters are held so long


class Rhythm:
    """Listens to backwards until a rhythm is known, and `expected` takes it: how many backwards from here to the next change, of what."""

    def __init__(self, expected) -> None:
        self._expected = expected
        self._watched = None
        self._state = None
        self._seen = self._since = self._period = 0
        loop.on_backward.append(self.on_backward)

    def _stop(self) -> None:
        self._watched = self._state = None
        loop.remove(self.on_backward)

    def on_backward(self, tensors: tuple, grad_tensors: object) -> None:
        """One more backward begins: have the parameters changed since the one before?"""
        self._seen += 1
        if self._seen > MOST_BACKWARDS or not nobody_else_updates():
            self._stop()
            return
        if loop.evaluating or self._seen == 1:  # nearly always an optimizer has stepped by the second: then no graph is walked
            return
        try:
            self._look(tensors)
        except Exception as error:
            self._stop()
            swallow("rhythm", error)

    def _look(self, tensors: tuple) -> None:
        if self._watched is None:
            leaves = leaves_of(tensors)
            if not leaves:
                self._stop()
                return
            self._watched, self._since = Watched(leaves), 0
            self._state = self._watched.state()
            return
        self._since += 1
        state = self._watched.state()
        if state == self._state:
            return
        self._state = state
        since, self._since = self._since, 0
        alone = since == 1  # each backward is a step of its own, and windows see what follows it
        if alone or (since == self._period and self._expected(since, self._watched.all)):
            self._stop()
        self._period = since
