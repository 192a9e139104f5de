"""Why a device did nothing: each idle instant of the window blamed on one cause.

The causes, in the order in which they may claim an instant:

* `data_loading`: a driving thread fetches its next batch;
* `collective_wait`: it is inside a call of a process group; or a collective runs, waits for a later rank, and nothing computes beside it;
* `copy`: it is inside a copying call;
* `no_work`: no driving thread has any event for a millisecond or more: code that the tracer does not see;
* `queued`: the work that follows had been launched before the device fell idle, and the device took that long to begin it;
* `synchronization`: the host waits for the device, or the gap began while it did: its queue ran dry and is being filled again;
* `launch_bound`: everything else: the host is busy, and the device waits for what it will launch next;
* `unknown`: the trace has no host threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np

from trainflash.profile.analysis.figures import share, us
from trainflash.profile.analysis.intervals import EMPTY, Spans, common, joined, shared_out, union, without
from trainflash.profile.analysis.thresholds import DEFAULT, Thresholds
from trainflash.profile.analysis.timeline import Timeline
from trainflash.schema.profile_times import Idle, IdleCause, IdleCauseName

CAUSES: tuple[IdleCauseName, ...] = get_args(IdleCauseName)


def causes_of(timeline: Timeline, waits: np.ndarray | None = None, limits: Thresholds = DEFAULT) -> dict[IdleCauseName, Spans]:
    """The idle instants of one device by cause. `waits`: nanoseconds of waiting in each event of the rank's devices, -1 unknown."""
    found = dict.fromkeys(CAUSES, EMPTY)
    if not len(timeline.rank.leading_tracks):
        found["unknown"] = timeline.idle
    else:
        late, queued, drained = _by_gap(timeline)
        claims = {
            "data_loading": timeline.threads.loading,
            "collective_wait": timeline.threads.collective_calls,
            "copy": timeline.threads.copy_calls,
            "no_work": _untraced(timeline, limits),
            "queued": queued,
            "synchronization": joined([timeline.threads.synchronizing, drained]),
            "launch_bound": late,
        }
        *given, rest = shared_out(timeline.idle, list(claims.values()))
        found |= dict(zip(claims, given, strict=True))
        found["no_work"] = joined([found["no_work"], rest])
    waiting = waiting_alone(timeline, waits)
    if waiting is not None:
        found["collective_wait"] = joined([found["collective_wait"], waiting])
    return found


def waiting_alone(timeline: Timeline, waits: np.ndarray | None) -> Spans | None:
    """The instants at which a device only waits inside collectives for later ranks; None: not known."""
    if waits is None:
        return None
    device, waits = timeline.device, timeline.of_events(waits)
    mine = np.flatnonzero(waits > 0)
    inside = timeline.during(union(device.start[mine], device.start[mine] + waits[mine]))
    transferring = np.flatnonzero(waits >= 0)
    working = timeline.during(union(device.start[transferring] + waits[transferring], device.end[transferring]))
    return without(inside, joined([timeline.compute, timeline.copy, working]))


def idle(
    timelines: Sequence[Timeline], causes: Sequence[dict[IdleCauseName, Spans]], waiting: Sequence[Spans | None], steps: int
) -> Idle | None:
    """All devices together; None without a device. `steps`: over all devices, 0 unknown."""
    if not any(len(timeline.device) for timeline in timelines):
        return None
    window = sum(timeline.whole.total for timeline in timelines)
    answers = []
    for cause in CAUSES:
        parts = [each[cause] for each in causes]
        total = sum(part.total for part in parts)
        if total:
            longest = max(int((part.end - part.start).max()) for part in parts if len(part))
            per_step = us(total / steps) if steps else None
            answers.append(IdleCause(cause, us(total), share(total, window), sum(map(len, parts)), us(longest), per_step))
    known = [each for each in waiting if each is not None]
    return Idle(
        window_us=us(window),
        idle_us=us(sum(timeline.idle.total for timeline in timelines)),
        waiting_us=us(sum(each.total for each in known)) if known else None,
        causes=tuple(sorted(answers, key=lambda each: (-each.total_us, each.cause))),
    )


def _untraced(timeline: Timeline, limits: Thresholds) -> Spans:
    """Stretches of a millisecond or more without any event of a driving thread."""
    threads = timeline.threads
    silent = without(timeline.whole, joined([threads.events, threads.loading, threads.synchronizing]))
    long = silent.end - silent.start >= limits.untraced_ns
    return Spans(silent.start[long], silent.end[long])


def _by_gap(timeline: Timeline) -> tuple[Spans, Spans, Spans]:
    """(the host launches late, the launch came before the gap, the gap began while the host waited for the device)."""
    device, gaps = timeline.device, timeline.idle
    if not len(device) or not len(gaps):
        return gaps, EMPTY, EMPTY
    following = np.searchsorted(device.start, gaps.end, side="left")
    there = following < len(device)
    following = np.minimum(following, len(device) - 1)
    launch = np.where(there & device.by_call[following], device.launch_ns[following], gaps.end)
    early = launch < gaps.start
    queued = Spans(gaps.start[early], gaps.end[early])
    waits = timeline.threads.synchronizing
    held = waits.contains(gaps.start)
    drained = Spans(gaps.start[held], gaps.end[held])
    return gaps, queued, common(drained, gaps)
