"""Idle time that belongs to no step: libraries that are loaded, memory that is allocated for the first time, compilation, one stall.

An idle stretch of a millisecond or more is a one-off where

* it is as long as all else is short: at least a twentieth of the window, and no other stretch is a quarter as long;
* the work behind it is the first of its kernel, and later work of the same kernel waits a tenth as long at most: a first use;
* it lies before the first work that the device does at all, and no other stretch is a quarter as long;
* most of it is one call that launches or allocates, or one operator that does only that: microseconds, unless it loads what it needs.

The second and third hold where the recorded steps may be the program's first ones, the fourth there or where it is rare. A single step
that others went before says nothing of what is rare, so that the first does not hold there. The third holds for shorter stretches, too,
where the whole window is short. Where the process sets up the device within the trace, for longer than all of its work lasts, every
stretch is a first use.
"""

from __future__ import annotations

import numpy as np

from trainflash.profile.analysis import words
from trainflash.profile.analysis.intervals import EMPTY, Spans
from trainflash.profile.analysis.step_marks import RankSteps
from trainflash.profile.analysis.thresholds import DEFAULT, Thresholds
from trainflash.profile.analysis.timeline import Timeline
from trainflash.profile.analysis.view import CALLS
from trainflash.profile.events import Kind

WARM_AFTER = 2  # steps before the first recorded one, from which on libraries are loaded


def one_offs(timeline: Timeline, steps: RankSteps, limits: Thresholds = DEFAULT) -> Spans:
    """The idle stretches of one device that no steady step has."""
    gaps, device = timeline.idle, timeline.device
    if not len(gaps) or not len(device):
        return EMPTY
    length = gaps.end - gaps.start
    marked = steps.basis in ("step_markers", "device_steps") and len(steps) > 0
    warm = marked and int(steps.number[0]) >= WARM_AFTER
    if not warm and _sets_up(timeline, limits):
        return gaps
    leading = (gaps.end <= device.start[0]) & _longest(length, limits)
    leading &= length >= min(limits.one_off_ns, limits.one_off_share * timeline.whole.total)
    long = length >= limits.one_off_ns
    found = np.zeros(len(gaps), bool)
    if not warm or len(steps) > 1:
        found |= _alone(length, timeline, limits)
    if not warm:
        found |= _first_use(timeline, length, limits)
    one_call = _one_call(timeline, gaps, limits) & long
    if not warm or one_call.sum() <= max(1, len(steps) // 3):  # in each step it is no one-off, but memory that is given back and taken
        found |= one_call
    found &= long
    found |= leading & (not warm)
    return Spans(gaps.start[found], gaps.end[found])


def _sets_up(timeline: Timeline, limits: Thresholds) -> bool:
    """Whether calls before the first work of the device took longer than all work of the device lasts: its context was made in them."""
    rank, device = timeline.rank, timeline.device
    rows = rank.rows(*CALLS, Kind.HOST_OP)
    rows = rows[(rank.trace.events.duration_ns[rows] >= limits.context_ns) & (rank.start[rows] < device.start[0])]
    rows = rows[rank.named(rows, words.is_preparing)]
    return bool(len(rows)) and rank.spans_of(rows).total >= int(device.end.max() - device.start[0])


def _alone(length: np.ndarray, timeline: Timeline, limits: Thresholds) -> np.ndarray:
    if len(timeline.inside.at) < limits.usual_from:
        return np.zeros(len(length), bool)
    return (length >= limits.one_off_share * timeline.whole.total) & _longest(length, limits)


def _longest(length: np.ndarray, limits: Thresholds) -> np.ndarray:
    """Which stretch no other one comes near."""
    order = np.sort(length)
    next_longest = np.where(length == order[-1], order[-2] if len(order) > 1 else 0, order[-1])
    return length * limits.one_off_like > next_longest


def _first_use(timeline: Timeline, length: np.ndarray, limits: Thresholds) -> np.ndarray:
    device, gaps = timeline.device, timeline.idle
    names = timeline.rank.trace.events.name[device.row]
    following = np.searchsorted(device.start, gaps.end, side="left")
    there = following < len(device)
    following = np.minimum(following, len(device) - 1)
    _, first = np.unique(names, return_index=True)
    is_first = np.zeros(len(device), bool)
    is_first[first] = True
    waited = np.zeros(len(device), np.int64)
    waited[following[there]] = length[there]
    usual = float(np.median(length[length >= limits.gap_ns])) if (length >= limits.gap_ns).any() else 0.0
    found = np.zeros(len(gaps), bool)
    for place in np.flatnonzero(there & (length >= limits.one_off_ns) & is_first[following]).tolist():
        again = np.flatnonzero(names == names[following[place]])[1:]
        later = float(np.median(waited[again])) if len(again) else usual
        found[place] = length[place] >= limits.first_use_over * later and (len(again) > 0 or len(device) >= limits.usual_from)
    return found


def _one_call(timeline: Timeline, gaps: Spans, limits: Thresholds) -> np.ndarray:
    rank = timeline.rank
    rows = rank.on_leading(rank.rows(*CALLS, Kind.HOST_OP))
    rows = rows[rank.trace.events.duration_ns[rows] >= limits.one_off_ns]
    rows = rows[rank.named(rows, words.is_preparing)]
    inside = rank.spans_of(rows).inside(gaps.start, gaps.end)
    return inside * 2 >= gaps.end - gaps.start
