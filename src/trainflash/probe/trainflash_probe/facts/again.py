"""Forward work that one step does more than once: trained modules called again with equal inputs, that give an equal result.

Of calls inside each other the outermost one that is a repetition counts. Dropout makes another result, and so does a change of weights.
Inputs on a device are not compared.
"""

from __future__ import annotations

import sys
import time

from ..guard import swallow
from ..writer import fact
from .askers import asker

MAX_OVERHEAD_NS = 200_000_000  # our own work in one window
MAX_CALLS = 5_000  # of modules in one window

_clock = time.perf_counter_ns


class Again:
    """The calls of one window. `digest(value, by_identity)` gives None for what cannot be compared."""

    def __init__(self, digest) -> None:
        self._digest = digest
        self._made: dict = {}  # (module, digest of its inputs) -> digest of the result
        self._rows: list = []  # (place, ns) of repetitions
        self._depth = self._calls = 0
        self._total_ns = 0  # of outermost calls
        self.overhead = 0

    def call(self, original, module, frame, args: tuple, kwargs: dict):
        """Call the module; an error of ours is none of the program's."""
        began = _clock()
        key, rows = self._key(module, args, kwargs), len(self._rows)
        self.overhead += _clock() - began
        before, began = self.overhead, _clock()
        self._depth += 1
        try:
            result = original(module, *args, **kwargs)
        finally:
            self._depth -= 1
        ended = _clock()
        ns = max(0, ended - began - (self.overhead - before))
        if not self._depth:
            self._total_ns += ns
        if key is not None:
            self._returned(key, rows, frame, result, ns)
            self.overhead += _clock() - ended
        return result

    def _key(self, module, args: tuple, kwargs: dict):
        self._calls += 1
        if self._calls > MAX_CALLS or self.overhead > MAX_OVERHEAD_NS:
            return None
        try:
            given = self._digest((args, kwargs), by_identity=True)
        except Exception as error:
            swallow("again", error)
            return None
        return None if given is None else (id(module), sys.modules["torch"].is_grad_enabled(), given)

    def _returned(self, key: tuple, rows: int, frame, result: object, ns: int) -> None:
        try:
            made = self._digest(result, by_identity=False)
            if made is None:
                return
            if self._made.get(key) == made:
                del self._rows[rows:]
                self._rows.append((asker(frame), ns))
            self._made[key] = made
        except Exception as error:
            swallow("again", error)

    def write(self) -> None:
        """One fact for the window, where there was a forward pass."""
        if not self._total_ns:
            return
        places: dict = {}
        for place, ns in self._rows:
            row = places.setdefault(tuple(place or ()), [0, 0])
            row[0] += 1
            row[1] += ns
        fact("again", total_ns=self._total_ns, rows=[[list(place) or None, *figures] for place, figures in places.items()])
