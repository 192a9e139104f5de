"""Begins and ends → slices, as arrays: nested per track, in any order of the file."""

from __future__ import annotations

import numpy as np


def pair(track: np.ndarray, t_ns: np.ndarray, ends: np.ndarray, name: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows of begins, rows of their ends) of those that match; the innermost open begin of a track is the one that an end closes.

    `ends` (bool): whether the row is an end. At equal times an end closes what began before, then begins open, and ends that found
    nothing close those: a slice of no length is one. `name` only makes the order of equal rows deterministic.
    """
    rows = np.lexsort((name, ends, t_ns, track))
    rows = rows[_ends_first(track[rows], t_ns[rows], ends[rows])]
    rows = rows[_with_a_begin(track[rows], ends[rows])]
    level = _running(np.where(ends[rows], -1, 1), track[rows]) + ends[rows]
    order = np.lexsort((level, track[rows]))
    ordered, levels = rows[order], level[order]
    first, second = ordered[:-1], ordered[1:]
    joined = ~ends[first] & ends[second] & (track[first] == track[second]) & (levels[:-1] == levels[1:])
    return first[joined], second[joined]


def _ends_first(track: np.ndarray, t_ns: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Order of rows that are sorted by (track, time, begins before ends): ends that close an older begin come first in their moment."""
    new = np.ones(len(track), bool)
    new[1:] = (track[1:] != track[:-1]) | (t_ns[1:] != t_ns[:-1])
    first = np.flatnonzero(new)
    if not len(first):
        return first
    moment = np.cumsum(new) - 1
    begun = np.add.reduceat((~ends).astype(np.int64), first)
    ended = np.add.reduceat(ends.astype(np.int64), first)
    running = _running(begun - ended, track[first])
    open_before = _shifted(running - _floor(running, track[first]), track[first])
    early = np.minimum(ended, open_before)
    place = np.arange(len(track)) - first[moment] - np.where(ends, begun[moment], 0)
    turn = np.where(ends, np.where(place < early[moment], 0, 2), 1)
    return np.lexsort((place, turn, moment))


def _with_a_begin(track: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Which rows stay when ends that nothing opened are left out."""
    floor = _floor(_running(np.where(ends, -1, 1), track), track)
    return ~(ends & (floor < _shifted(floor, track)))


def _running(change: np.ndarray, track: np.ndarray) -> np.ndarray:
    """The cumulative sum of `change`, begun anew with each track."""
    total = np.cumsum(change)
    first = np.flatnonzero(np.r_[True, track[1:] != track[:-1]]) if len(track) else np.empty(0, np.int64)
    return total - np.repeat(total[first] - change[first], np.diff(np.r_[first, len(track)]))


def _floor(running: np.ndarray, track: np.ndarray) -> np.ndarray:
    """The lowest value so far in the track, at most 0: minus the number of ends that nothing opened."""
    number = np.cumsum(np.r_[0, track[1:] != track[:-1]]) if len(track) else np.empty(0, np.int64)
    step = int(np.abs(running).max(initial=0)) + 1
    return np.minimum.accumulate(np.minimum(running, 0) - number * step) + number * step


def _shifted(values: np.ndarray, track: np.ndarray) -> np.ndarray:
    """The value of the row before in the same track, 0 for its first."""
    before = np.zeros(len(values), np.int64)
    before[1:] = np.where(track[1:] == track[:-1], values[:-1], 0)
    return before
