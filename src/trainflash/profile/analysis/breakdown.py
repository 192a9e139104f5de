"""Where the time of the window went: compute, communication, copy, host, stall; and how communication lay beside computing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainflash.profile.analysis.figures import ratio, share, us
from trainflash.profile.analysis.intervals import EMPTY, Spans, common, joined, shared_out, union, without
from trainflash.profile.analysis.timeline import PARTS, Timeline
from trainflash.profile.analysis.view import Work
from trainflash.schema.profile_times import BreakdownMode, BreakdownPart, Overlap, TimeBreakdown


@dataclass(frozen=True)
class _Totals:
    parts: dict[str, int]
    total: int
    tracks: int


def time_breakdown(timelines: Sequence[Timeline], mode: BreakdownMode) -> TimeBreakdown:
    """The breakdown of all devices of all ranks together, in the mode asked for."""
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
    return _Totals(dict(timeline.parts_ns), timeline.whole.total, 1)


def _per_track(timeline: Timeline) -> _Totals:
    device, inside = timeline.device, timeline.inside
    tracks = np.unique(device.track)
    if not len(tracks):
        return _global(timeline)
    parts = dict.fromkeys(PARTS, 0)
    for track in tracks:
        mine = device.track[inside.at] == track
        chosen = [mine & (device.work[inside.at] == kind) for kind in Work]
        works = [union(inside.start[keep], inside.end[keep]) for keep in chosen]
        for name, spans in zip(PARTS, shared_out(timeline.whole, [*works, timeline.threads.working]), strict=True):
            parts[name] += spans.total
    return _Totals(parts, timeline.whole.total * len(tracks), len(tracks))


def _inclusive(timeline: Timeline) -> _Totals:
    device, inside = timeline.device, timeline.inside
    parts = {name: int(inside.duration[device.work[inside.at] == kind].sum()) for name, kind in zip(PARTS[:3], Work, strict=True)}
    if not len(timeline.device):
        parts["compute"], parts["communication"] = timeline.compute.total, timeline.communication.total
    parts |= {"host": timeline.threads.working.total, "stall": timeline.parts_ns["stall"]}
    return _Totals(parts, timeline.whole.total, max(len(np.unique(device.track)), 1))


_MODES = {"exclusive_global": _global, "exclusive_per_track": _per_track, "inclusive": _inclusive}


def overlap(timelines: Sequence[Timeline]) -> Overlap | None:
    """Communication beside computing on the same device, all together; None where nothing communicates on a device."""
    talking = [timeline for timeline in timelines if len(timeline.device) and len(timeline.communication)]
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
    device = timeline.device
    computing = np.flatnonzero((device.work == Work.COMPUTE) & device.by_call)
    if not device.by_call.any():
        return None
    exposed = without(timeline.communication, timeline.compute)
    if not len(computing):
        return common(exposed, timeline.threads.synchronizing)
    if not len(exposed):
        return EMPTY
    following = np.searchsorted(device.start[computing], exposed.start, side="left")
    there = following < len(computing)
    next_launch = np.where(there, device.launch_ns[computing[np.minimum(following, len(computing) - 1)]], exposed.end)
    queued = union(np.maximum(exposed.start, next_launch), exposed.end)
    return joined([queued, common(exposed, timeline.threads.synchronizing)])
