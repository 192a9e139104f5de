"""Where the time of the window went: compute, communication, copy, host, stall; and how communication lay beside computing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trainflash.profile.analysis import words
from trainflash.profile.analysis.figures import ratio, share, us
from trainflash.profile.analysis.intervals import EMPTY, Spans, clipped, common, joined, shared_out, span, union, without
from trainflash.profile.analysis.view import CALLS, Rank, Work
from trainflash.profile.events import Kind
from trainflash.schema.profile_times import BreakdownMode, BreakdownPart, Overlap, TimeBreakdown

PARTS = ("compute", "communication", "copy", "host", "stall")


class Timeline:
    """One rank within its window as sets of instants."""

    def __init__(self, rank: Rank, window: tuple[int, int]) -> None:
        self.rank, self.window = rank, window
        self.whole = span(window)

    def during(self, spans: Spans) -> Spans:
        return clipped(spans, self.window)

    def _work(self, kind: Work) -> Spans:
        return self.during(self.rank.device.spans(self.rank.device.work == kind))

    @cached_property
    def compute(self) -> Spans:
        """A kernel computes; without a device: an operator runs on the host."""
        if not len(self.rank.device):
            return without(self.during(self.rank.spans_of(self.rank.rows(Kind.HOST_OP))), joined([self.loading, self.communication]))
        return self._work(Work.COMPUTE)

    @cached_property
    def communication(self) -> Spans:
        if not len(self.rank.device):
            rows = self.rank.rows(Kind.HOST_OP, Kind.ANNOTATION)
            return self.during(self.rank.spans_of(rows[self.rank.named(rows, words.is_collective_call)]))
        return self._work(Work.COMMUNICATION)

    @cached_property
    def copy(self) -> Spans:
        return self._work(Work.COPY)

    @cached_property
    def busy(self) -> Spans:
        """Something runs on a device."""
        return joined([self.compute, self.communication, self.copy])

    @cached_property
    def idle(self) -> Spans:
        return without(self.whole, self.busy)

    @cached_property
    def synchronizing(self) -> Spans:
        """A driving thread waits for the device."""
        rows = self.rank.rows(*CALLS, Kind.HOST_OP, Kind.ANNOTATION)
        rows = self.rank.on_leading(rows)
        return self.during(self.rank.spans_of(rows[self.rank.named(rows, words.is_synchronising)]))

    @cached_property
    def loading(self) -> Spans:
        """A driving thread fetches its next batch."""
        rows = self.rank.on_leading(self.rank.rows(Kind.HOST_OP, Kind.ANNOTATION, Kind.PYTHON))
        return self.during(self.rank.spans_of(rows[self.rank.named(rows, words.is_loading)]))

    @cached_property
    def host_events(self) -> Spans:
        """Any event of a driving thread but the marks of steps and of annotations."""
        rows = self.rank.on_leading(self.rank.rows(Kind.HOST_OP, Kind.PYTHON, *CALLS))
        return self.during(self.rank.spans_of(rows))

    @cached_property
    def host(self) -> Spans:
        """A driving thread works: it neither waits for the device nor sleeps."""
        frames = self.rank.on_leading(self.rank.rows(Kind.PYTHON))
        waiting = self.during(self.rank.spans_of(frames[self.rank.named(frames, words.is_waiting_frame)]))
        working = without(self.host_events, waiting)
        return without(joined([working, self.loading]), self.synchronizing)

    @cached_property
    def parts(self) -> dict[str, Spans]:
        """The window shared out among `PARTS`: device work first, computing before communication before copies."""
        given = shared_out(self.whole, [self.compute, self.communication, self.copy, self.host])
        return dict(zip(PARTS, given, strict=True))


@dataclass(frozen=True)
class _Totals:
    parts: dict[str, int]
    total: int
    tracks: int


def time_breakdown(timelines: Sequence[Timeline], mode: BreakdownMode) -> TimeBreakdown:
    """The breakdown of all ranks together, in the mode asked for."""
    made = [_MODES[mode](timeline) for timeline in timelines]
    total = sum(each.total for each in made)
    parts = {name: sum(each.parts[name] for each in made) for name in PARTS}
    window = sum(timeline.whole.total for timeline in timelines)

    def part(name: str) -> BreakdownPart:
        return BreakdownPart(us(parts[name]), share(parts[name], total))

    return TimeBreakdown(
        duration_basis=mode,
        total_duration=us(total),
        compute=part("compute"),
        communication=part("communication"),
        copy=part("copy"),
        host=part("host"),
        stall=part("stall"),
        other=BreakdownPart(0.0, 0.0),
        window_us=us(window),
        window_start_us=us(timelines[0].window[0]) if timelines else None,
        tracks=sum(each.tracks for each in made),
    )


def _global(timeline: Timeline) -> _Totals:
    return _Totals({name: spans.total for name, spans in timeline.parts.items()}, timeline.whole.total, 1)


def _per_track(timeline: Timeline) -> _Totals:
    device = timeline.rank.device
    tracks = np.unique(device.track)
    if not len(tracks):
        return _global(timeline)
    parts = dict.fromkeys(PARTS, 0)
    for track in tracks:
        mine = device.track == track
        works = [timeline.during(device.spans(mine & (device.work == kind))) for kind in Work]
        for name, spans in zip(PARTS, shared_out(timeline.whole, [*works, timeline.host]), strict=True):
            parts[name] += spans.total
    return _Totals(parts, timeline.whole.total * len(tracks), len(tracks))


def _inclusive(timeline: Timeline) -> _Totals:
    device = timeline.rank.device
    start, end = (np.clip(edge, *timeline.window) for edge in (device.start, device.end))
    parts = {name: int((end - start)[device.work == kind].sum()) for name, kind in zip(PARTS[:3], Work, strict=True)}
    if not len(device):
        parts["compute"], parts["communication"] = timeline.compute.total, timeline.communication.total
    parts |= {"host": timeline.host.total, "stall": timeline.parts["stall"].total}
    return _Totals(parts, timeline.whole.total, max(len(np.unique(device.track)), 1))


_MODES = {"exclusive_global": _global, "exclusive_per_track": _per_track, "inclusive": _inclusive}


def overlap(timelines: Sequence[Timeline]) -> Overlap | None:
    """Communication beside computing, all ranks together; None where nothing communicates on a device."""
    talking = [timeline for timeline in timelines if len(timeline.rank.device) and len(timeline.communication)]
    if not talking:
        return None
    communication = sum(timeline.communication.total for timeline in talking)
    both = sum(common(timeline.communication, timeline.compute).total for timeline in talking)
    blocking = [blocking_spans(timeline) for timeline in talking]
    return Overlap(
        compute_us=us(sum(timeline.compute.total for timeline in talking)),
        communication_us=us(communication),
        overlapped_us=us(both),
        exposed_us=us(communication - both),
        blocking_us=None if any(each is None for each in blocking) else us(sum(each.total for each in blocking if each is not None)),
        overlap_share=ratio(both, communication),
    )


def blocking_spans(timeline: Timeline) -> Spans | None:
    """The instants at which communication alone runs and holds up what comes next; None where launches are not recorded.

    Exposed is not blocking: while the next computing kernel has not even been launched, it is the host that the device waits for. A host
    that itself waits for the device counts as held up.
    """
    device = timeline.rank.device
    computing = np.flatnonzero((device.work == Work.COMPUTE) & (device.launch >= 0))
    if not len(computing):
        return None
    exposed = without(timeline.communication, timeline.compute)
    if not len(exposed):
        return EMPTY
    following = np.searchsorted(device.start[computing], exposed.start, side="left")
    there = following < len(computing)
    next_launch = np.where(there, device.launch_ns[computing[np.minimum(following, len(computing) - 1)]], exposed.end)
    queued = union(np.maximum(exposed.start, next_launch), exposed.end)
    return joined([queued, common(exposed, timeline.synchronizing)])
