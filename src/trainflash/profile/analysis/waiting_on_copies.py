"""What the host does inside calls that copy: bytes that it stages for the device, and results that it waits for."""

from __future__ import annotations

import numpy as np

from trainflash.profile.analysis import words
from trainflash.profile.analysis.copies import direction
from trainflash.profile.analysis.intervals import EMPTY, Spans, joined, union
from trainflash.profile.analysis.thresholds import DEFAULT, Thresholds
from trainflash.profile.analysis.timeline import Timeline
from trainflash.profile.analysis.view import CALLS, Work

TO_DEVICE, TO_HOST = "H2D", "D2H"


def staged_and_read(timeline: Timeline, limits: Thresholds = DEFAULT) -> tuple[Spans, Spans]:
    """(the host stages bytes for the device, the host is held by a read from the device), from the calls that made these copies.

    A call stages no longer than its bytes take at a slow host's rate: what it blocks beyond that it waits for something else. A call
    that ends before its copy does holds nobody. A call whose copy is not recorded stages for a moment at most.
    """
    rank, device = timeline.rank, timeline.device
    at = np.flatnonzero((device.work == Work.COPY) & device.by_call)
    unseen = _without_copy(timeline, limits)
    if not len(at):
        return unseen, EMPTY
    rows, calls = device.row[at], device.launch[at]
    way = _ways(timeline, rows)
    moved = rank.trace.column("bytes").take(rows, 0)
    most = np.where(moved > 0, moved / limits.staging_bytes_per_ns, limits.staging_ns).astype(np.int64)
    begin, end = rank.start[calls], rank.end[calls]
    put, got = way == TO_DEVICE, (way == TO_HOST) & (end >= device.end[at] - limits.gap_ns)
    until = np.minimum(device.start[at], end)
    staged = union(np.maximum(begin, until - most)[put], until[put])
    return joined([timeline.during(staged), unseen]), timeline.during(union(begin[got], end[got]))


def _without_copy(timeline: Timeline, limits: Thresholds) -> Spans:
    """Calls that copy of which the trace has no copy: its direction and bytes are unknown."""
    rank = timeline.rank
    rows = rank.on_leading(rank.rows(*CALLS))
    rows = rows[rank.named(rows, words.is_copy_call)]
    rows = rows[~np.isin(rows, rank.device.launch)]
    return timeline.during(union(np.maximum(rank.start[rows], rank.end[rows] - limits.staging_ns), rank.end[rows]))


def _ways(timeline: Timeline, rows: np.ndarray) -> np.ndarray:
    """The direction of each copy."""
    trace = timeline.rank.trace
    kinds = [trace.column(f"memory_kind_{end}").take(rows, -1) for end in ("src", "dst")]
    keys, which = np.unique(np.stack((trace.events.name[rows], trace.events.kind[rows], *kinds)), axis=1, return_inverse=True)
    told = []
    for name, kind, source, target in keys.T.tolist():
        ends = [trace.strings[code] if code >= 0 else None for code in (source, target)]
        told.append(direction(trace.strings[name], kind, *ends)[0])
    return np.asarray(told)[which.ravel()]
