"""Why a device did nothing: each idle instant of the window blamed on one cause.

The causes, in the order in which they may claim an instant:

* `startup`: a stretch that no steady step has (`one_offs`): loading, first allocations, compilation, a single stall;
* `queued`: what follows had been launched already, and the device took longer to begin it than a launch takes: no host call is to blame;
* `data_loading`: a driving thread fetches its next batch;
* `collective_wait`: it is inside a call of a process group; or a collective runs, waits for a later rank, and nothing computes beside it;
* `copy`: it stages the bytes of a copy to the device;
* `no_work`: no driving thread has any event for a millisecond or more: code that the tracer does not see;
* `host_code`: for as long it makes no call into the runtime, before work that it launches later: operators and Python on the host;
  not where it goes from one short operator to the next: that is what launching is made of;
* `synchronization`: the host waits for the device, for a read from it too, or the gap began while it did: its queue ran dry and is
  being filled again;
* `launch_bound`: everything else: the host is busy, and the device waits for what it will launch next;
* `unknown`: the trace has no host threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np

from trainflash.profile.analysis.figures import share, us
from trainflash.profile.analysis.intervals import EMPTY, Spans, common, joined, shared_out, union, without
from trainflash.profile.analysis.one_offs import one_offs
from trainflash.profile.analysis.step_marks import RankSteps
from trainflash.profile.analysis.thresholds import DEFAULT, Thresholds
from trainflash.profile.analysis.timeline import Timeline
from trainflash.profile.analysis.waiting_on_copies import staged_and_read
from trainflash.profile.events import Kind
from trainflash.schema.profile_times import Idle, IdleCause, IdleCauseName

CAUSES: tuple[IdleCauseName, ...] = get_args(IdleCauseName)


def causes_of(
    timeline: Timeline, steps: RankSteps, waits: np.ndarray | None = None, limits: Thresholds = DEFAULT
) -> dict[IdleCauseName, Spans]:
    """The idle instants of one device by cause. `waits`: nanoseconds of waiting in each event of the rank's devices, -1 unknown."""
    found = dict.fromkeys(CAUSES, EMPTY)
    startup = one_offs(timeline, steps, limits)
    if not len(steps):  # how long a batch takes is known, whether it was the loader's first is not
        startup = without(startup, timeline.threads.loading)
    if not len(timeline.rank.leading_tracks):
        found["startup"], found["unknown"] = startup, without(timeline.idle, startup)
    else:
        staged, read = staged_and_read(timeline, limits)
        held = joined([timeline.threads.synchronizing, read])
        late, queued, drained, known = _by_gap(timeline, held, limits)
        threads = timeline.threads
        claims = {
            "startup": startup,
            "queued": queued,
            "data_loading": threads.loading,
            "collective_wait": threads.collective_calls,
            "copy": staged,
            "no_work": _silent(timeline, joined([threads.events, threads.loading, held]), limits),
            "host_code": joined(
                [
                    _silent(timeline, joined([threads.operating, held]), limits),
                    _not_dispatching(timeline, _silent(timeline, joined([threads.calling, held]), limits, known), limits),
                ]
            ),
            "synchronization": joined([held, drained]),
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
            per_step = us(total / steps) if steps and cause != "startup" else None  # what no steady step has is none's part
            answers.append(IdleCause(cause, us(total), share(total, window), sum(map(len, parts)), us(longest), per_step))
    known = [each for each in waiting if each is not None]
    return Idle(
        window_us=us(window),
        idle_us=us(sum(timeline.idle.total for timeline in timelines)),
        waiting_us=us(sum(each.total for each in known)) if known else None,
        causes=tuple(sorted(answers, key=lambda each: (-each.total_us, each.cause))),
    )


def _silent(timeline: Timeline, events: Spans, limits: Thresholds, inside: Spans | None = None) -> Spans:
    """Stretches of a millisecond or more (`inside` these) without any of these events."""
    silent = without(timeline.whole if inside is None else inside, events)
    long = silent.end - silent.start >= limits.untraced_ns
    return Spans(silent.start[long], silent.end[long])


def _not_dispatching(timeline: Timeline, silent: Spans, limits: Thresholds) -> Spans:
    """Those of the stretches in which operators do not follow each other as closely as an eager program dispatches them."""
    rank = timeline.rank
    begun = np.sort(rank.start[rank.on_leading(rank.rows(Kind.HOST_OP))])
    number = np.searchsorted(begun, silent.end, side="left") - np.searchsorted(begun, silent.start, side="left")
    slow = number * limits.dispatch_ns < silent.end - silent.start
    return Spans(silent.start[slow], silent.end[slow])


def _by_gap(timeline: Timeline, held: Spans, limits: Thresholds) -> tuple[Spans, Spans, Spans, Spans]:
    """(the host launches late, the launch came before, the gap began while the host waited for the device, what was late is known).

    Work that was launched before the gap is queued from when it could have begun; what was launched in mid-gap from the end of its call
    on, where it waits for longer than a launch takes.
    """
    device, gaps = timeline.device, timeline.idle
    if not len(device) or not len(gaps):
        return gaps, EMPTY, EMPTY, EMPTY
    following = np.searchsorted(device.start, gaps.end, side="left")
    there = following < len(device)
    following = np.minimum(following, len(device) - 1)
    known = there & device.by_call[following]
    calls = np.where(known, device.launch[following], 0)
    launch = np.where(known, device.launch_ns[following], gaps.end)
    returned = np.where(known, timeline.rank.end[calls], gaps.end)
    since = np.where(launch < gaps.start, np.clip(launch + limits.launch_ns, gaps.start, gaps.end), returned)
    early = (launch < gaps.start) | (gaps.end - returned >= limits.latency_ns)
    queued = union(since[early], gaps.end[early])
    dry = held.contains(gaps.start)
    drained = Spans(gaps.start[dry], gaps.end[dry])
    return gaps, queued, common(drained, gaps), Spans(gaps.start[known], gaps.end[known])
