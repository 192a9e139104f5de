"""The sum of a counter over processes that come and go, which never goes backwards."""

from __future__ import annotations

from collections.abc import Mapping


class Tally:
    """Adds up a counter of many processes, from the first sight of each on.

    The kernel adds the counter of a child to its parent's when the parent waits for it. A child that vanishes while its parent is
    watched is therefore in the parent's figure already; one without a watched parent is kept here.
    """

    def __init__(self) -> None:
        self._last: dict[int, float] = {}
        self._from: dict[int, float] = {}
        self._parents: dict[int, int] = {}
        self._ended = 0.0
        self._most: float | None = None

    def add(self, parents: Mapping[int, int], values: Mapping[int, float | None]) -> float | None:
        """The sum now. `parents` are all watched processes with theirs, `values` their counters (None: not readable now).

        None until one counter was read.
        """
        for pid in [pid for pid in self._last if pid not in parents]:
            since = self._from.pop(pid)
            value = self._last.pop(pid)
            parent = self._parents.get(pid)
            if parent in parents and parent in self._from:
                self._from[parent] += since
            else:
                self._ended += value - since
        newborn = {pid for pid, parent in parents.items() if pid not in self._parents and parent in self._parents}
        for pid, parent in parents.items():
            if parent in newborn and pid not in self._parents:
                newborn.add(pid)
            value = values.get(pid)
            if value is not None:
                self._last[pid] = value
                self._from.setdefault(pid, 0.0 if pid in newborn else value)
        self._parents = dict(parents)
        if not self._last and self._most is None:
            return None
        total = self._ended + sum(value - self._from[pid] for pid, value in self._last.items())
        self._most = max(total, self._most or 0.0)
        return self._most
