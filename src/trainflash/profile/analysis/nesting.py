"""Who contains whom on a track: parents, depth, own time, paths of names, and the innermost event at an instant.

Events must come as the model orders them: by track, then start, longer first. Where events of one track overlap without nesting, which a
sane tracer never writes, an event belongs to the innermost one that is open at its start, and a parent loses only what lies inside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from trainflash.profile.analysis.intervals import distinct

SEGMENT_EVENTS = 1 << 15  # whose segments are held at once
OWN_EVENTS = 1 << 16  # whose time is taken from their parents at once


@dataclass(frozen=True)
class Nest:
    """Events of several tracks with their parents. All arrays have one length; `parent` (int32) is -1 for an outermost event."""

    start: np.ndarray
    end: np.ndarray
    track: np.ndarray
    parent: np.ndarray
    depth: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def own_ns(self) -> np.ndarray:
        """Duration of each event without that of its children."""
        own = self.end - self.start
        for first in range(0, len(own), OWN_EVENTS):  # blocks: what is held beside it stays small
            inner = first + np.flatnonzero(self.parent[first : first + OWN_EVENTS] >= 0)
            outer = self.parent[inner]
            np.subtract.at(own, outer, np.maximum(np.minimum(self.end[inner], self.end[outer]) - self.start[inner], 0))
        return np.maximum(own, 0, out=own)

    def clipped(self, window: tuple[int, int]) -> Nest:
        """The same nest of what lies within the window: an event outside of it is left without length."""
        return replace(self, start=np.clip(self.start, *window), end=np.clip(self.end, *window))

    def innermost(self, track: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Index of the innermost event that is open at each instant on each track, -1 where there is none."""
        found = np.full(len(at), -1, np.int64)
        for number in distinct(track):
            low, high = np.searchsorted(self.track, [number, number + 1])
            mine = np.flatnonzero(track == number)
            if low == high:
                continue
            place = low + np.searchsorted(self.start[low:high], at[mine], side="right") - 1
            found[mine] = np.where(place >= low, place, -1)
        return self._open(found, at)

    def _open(self, found: np.ndarray, at: np.ndarray) -> np.ndarray:
        closed = np.flatnonzero(found >= 0)
        while len(closed):
            closed = closed[self.end[found[closed]] <= at[closed]]
            found[closed] = self.parent[found[closed]]
            closed = closed[found[closed] >= 0]
        return found

    def segments(self, most: int = SEGMENT_EVENTS) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """(start, end, event): each instant of a track that any event covers, given to the innermost one.

        By track and time, in blocks: those of at most `most` events at once.
        """
        for number in distinct(self.track).tolist():
            low, high = np.searchsorted(self.track, [number, number + 1]).tolist()
            starts, ends = self.start[low:high], np.sort(self.end[low:high])
            for first in range(0, high - low, most):
                behind = first + most
                left, right = int(starts[first]), int(starts[behind]) if behind < high - low else int(ends[-1])
                inside = ends[np.searchsorted(ends, left, side="right") : np.searchsorted(ends, right, side="right")]
                edges = distinct(np.concatenate((starts[first:behind], inside, [left, max(left, right)])))
                if len(edges) < 2:
                    continue
                inner = self.innermost(np.full(len(edges) - 1, number, self.track.dtype), edges[:-1])
                real = inner >= 0
                yield edges[:-1][real], edges[1:][real], inner[real]


def nest(start: np.ndarray, duration: np.ndarray, track: np.ndarray) -> Nest:
    """The nest of events in the model's order."""
    start = np.asarray(start, np.int64)
    end = start + np.asarray(duration, np.int64)
    parent = np.full(len(start), -1, np.int32)
    depth = np.zeros(len(start), np.int32)
    bounds = np.flatnonzero(np.diff(track, prepend=-1, append=-2)) if len(start) else np.empty(0, np.int64)
    for low, high in pairwise(bounds.tolist()):
        _nest_track(start, end, parent, depth, low, high)
    return Nest(start, end, np.asarray(track), parent, depth)


def _nest_track(start: np.ndarray, end: np.ndarray, parent: np.ndarray, depth: np.ndarray, low: int, high: int) -> None:
    begins = start[low:high]
    ends = np.maximum(end[low:high], begins + 1)  # an event without length still holds its own instant
    level = depth[low:high]
    level[:] = np.searchsorted(np.sort(ends), begins, side="right")
    np.subtract(np.arange(high - low, dtype=np.int32), level, out=level)
    np.maximum(level, 0, out=level)
    order = np.argsort(level.astype(np.int16) if level.max() < 1 << 15 else level, kind="stable").astype(np.int32)  # short: no comparisons
    firsts = np.searchsorted(level[order], np.arange(int(level.max()) + 2))
    above = np.empty(0, np.int32)
    mine = parent[low:high]
    for here in range(len(firsts) - 1):
        members = order[firsts[here] : firsts[here + 1]]
        if len(above) and len(members):
            place = np.searchsorted(above, members) - 1
            mine[members] = np.where(place >= 0, above[place], -1)
        above = members
    stale = np.flatnonzero(mine >= 0)
    while len(stale):
        stale = stale[ends[mine[stale]] <= begins[stale]]
        mine[stale] = mine[mine[stale]]
        stale = stale[mine[stale] >= 0]
    inner = np.flatnonzero(mine >= 0)
    if (ends[inner] > ends[mine[inner]]).any():  # overlapping without nesting: only one after another tells who is open
        mine[:] = _open_at_start(begins, ends)
    mine[mine >= 0] += low


def _open_at_start(begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """For each event the last begun one that is open at its start, -1 where none is."""
    found = np.full(len(begins), -1, np.int32)
    stack: list[int] = []
    last = ends.tolist()
    for place, begin in enumerate(begins.tolist()):
        while stack and last[stack[-1]] <= begin:
            stack.pop()
        if stack:
            found[place] = stack[-1]
        stack.append(place)
    return found


@dataclass(frozen=True)
class Paths:
    """Distinct paths of names. `of` says the path of each event; path p is `parent[p]`'s (-1: none) followed by `name[p]`."""

    of: np.ndarray
    parent: np.ndarray
    name: np.ndarray

    def rolled_up(self, amount: np.ndarray) -> np.ndarray:
        """`amount` of each path plus that of all paths below it."""
        total = amount.copy()
        for path in range(len(self.parent) - 1, -1, -1):  # a path stands behind its parent
            if self.parent[path] >= 0:
                total[self.parent[path]] += total[path]
        return total

    def depth(self) -> np.ndarray:
        """How many names stand before the last one."""
        depth = np.zeros(len(self.parent), np.int64)
        for path, above in enumerate(self.parent):
            if above >= 0:
                depth[path] = depth[above] + 1
        return depth


def paths(tree: Nest, name: np.ndarray) -> Paths:
    """The path of every event: the names of the events around it, outermost first, then its own. `name` holds small integers."""
    of = np.full(len(tree), -1, np.int64)
    parents: list[np.ndarray] = []
    names: list[np.ndarray] = []
    known = 0
    width = int(name.max()) + 1 if len(name) else 1
    left = np.arange(len(tree))
    while len(left):
        above = tree.parent[left]
        ready = (above < 0) | (of[above] >= 0)
        now = left[ready]
        outer = np.where(tree.parent[now] >= 0, of[tree.parent[now]], -1)
        keys, mine = np.unique((outer + 1) * width + name[now], return_inverse=True)
        of[now] = known + mine
        parents.append(keys // width - 1)
        names.append(keys % width)
        known += len(keys)
        left = left[~ready]
    none = np.empty(0, np.int64)
    return Paths(of, np.concatenate(parents) if parents else none, np.concatenate(names) if names else none)
