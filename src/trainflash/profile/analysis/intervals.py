"""Sets of instants: sorted, disjoint, half-open intervals of int64 nanoseconds, and exact algebra on them.

Sums of durations count an instant once per event; the measure of a set counts it once. Everything that is said to be a part of the wall
time is a measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Spans:
    """[start, end) pairs, ascending, neither empty nor touching."""

    start: np.ndarray
    end: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    @property
    def total(self) -> int:
        """Measure in nanoseconds."""
        return int((self.end - self.start).sum())

    @property
    def edges(self) -> np.ndarray:
        """Starts and ends in turn, strictly ascending: an instant lies inside where an odd number of edges is at or before it."""
        return np.stack((self.start, self.end), axis=1).ravel()

    def contains(self, at: np.ndarray) -> np.ndarray:
        """Whether each instant lies inside."""
        return np.searchsorted(self.edges, at, side="right") % 2 == 1

    def before(self, at: np.ndarray) -> np.ndarray:
        """Measure of the part before each instant."""
        at = np.asarray(at, np.int64)
        if not len(self):
            return np.zeros(len(at), np.int64)
        whole = np.concatenate(([0], np.cumsum(self.end - self.start)))
        started = np.searchsorted(self.start, at, side="right")
        last = np.maximum(started - 1, 0)
        return whole[started] - np.where(started > 0, np.maximum(self.end[last] - at, 0), 0)

    def inside(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Measure of the part within each [start, end), which may overlap one another."""
        return self.before(end) - self.before(start)


EMPTY = Spans(np.empty(0, np.int64), np.empty(0, np.int64))


def union(start: np.ndarray, end: np.ndarray) -> Spans:
    """The instants inside any of [start, end); empty ones count nothing."""
    start, end = np.asarray(start, np.int64), np.asarray(end, np.int64)
    real = end > start
    start, end = start[real], end[real]
    if not len(start):
        return EMPTY
    if (np.diff(start) < 0).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    fresh = np.concatenate(([True], start[1:] > reach[:-1]))
    first = np.flatnonzero(fresh)
    return Spans(start[first], reach[np.concatenate((first[1:] - 1, [len(start) - 1]))])


def joined(sets: Sequence[Spans]) -> Spans:
    """The instants inside any of the sets."""
    if not sets:
        return EMPTY
    return union(np.concatenate([each.start for each in sets]), np.concatenate([each.end for each in sets]))


def common(one: Spans, other: Spans) -> Spans:
    """The instants inside both."""
    return _where((one, other), lambda inside: inside[0] & inside[1])


def without(one: Spans, other: Spans) -> Spans:
    """The instants inside `one` and not inside `other`."""
    return _where((one, other), lambda inside: inside[0] & ~inside[1])


def clipped(one: Spans, window: tuple[int, int]) -> Spans:
    """The part within [window[0], window[1])."""
    return union(np.clip(one.start, *window), np.clip(one.end, *window))


def span(window: tuple[int, int]) -> Spans:
    """One interval as a set."""
    return union(np.asarray([window[0]]), np.asarray([window[1]]))


def shared_out(window: Spans, claims: Sequence[Spans]) -> list[Spans]:
    """`window` divided among `claims`, each instant to the first that holds it; the last set of the answer is what nobody claims.

    The measures of the answer add up to that of `window` exactly.
    """
    sets = (window, *claims)
    edges = distinct(np.concatenate([each.edges for each in sets]))
    if len(edges) < 2:
        return [EMPTY] * (len(claims) + 1)
    free = _inside(window, edges)
    parts = []
    for claim in claims:
        mine = free & _inside(claim, edges)
        parts.append(union(edges[:-1][mine], edges[1:][mine]))
        free &= ~mine
    return [*parts, union(edges[:-1][free], edges[1:][free])]


def distinct(values: np.ndarray) -> np.ndarray:
    """Sorted, each value once. Runs that are sorted already cost one comparison each, which `np.unique` does not see."""
    ordered = np.sort(values, kind="stable")
    return ordered[np.concatenate((np.ones(min(len(ordered), 1), bool), ordered[1:] != ordered[:-1]))]


def overlapping_pairs(start: np.ndarray, end: np.ndarray, spans: Spans) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(which [start, end), which of `spans`, nanoseconds in common) for all that meet."""
    first = np.searchsorted(spans.end, start, side="right")
    last = np.searchsorted(spans.start, end, side="left")
    count = np.maximum(last - first, 0)
    left = np.repeat(np.arange(len(start)), count)
    offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    right = np.repeat(first, count) + offset
    length = np.minimum(end[left], spans.end[right]) - np.maximum(start[left], spans.start[right])
    real = length > 0
    return left[real], right[real], length[real]


def _where(sets, keep) -> Spans:
    edges = distinct(np.concatenate([each.edges for each in sets]))
    if len(edges) < 2:
        return EMPTY
    wanted = keep([_inside(each, edges) for each in sets])
    return union(edges[:-1][wanted], edges[1:][wanted])


def _inside(one: Spans, edges: np.ndarray) -> np.ndarray:
    """Whether each stretch between two of `edges` lies inside; they are strictly ascending, and those of `one` are among them."""
    flips = np.zeros(len(edges), bool)
    flips[np.searchsorted(edges, one.edges)] = True
    return np.logical_xor.accumulate(flips)[:-1]
