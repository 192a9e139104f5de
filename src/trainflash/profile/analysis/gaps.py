"""Idle time before an op: what the device waited to begin, and what the host did meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from trainflash.profile.analysis import words
from trainflash.profile.analysis.figures import us
from trainflash.profile.analysis.intervals import Spans, overlapping_pairs
from trainflash.profile.analysis.regions import Regions
from trainflash.profile.analysis.tallies import largest, pairs, summed
from trainflash.profile.analysis.thresholds import DEFAULT, Thresholds
from trainflash.profile.analysis.timeline import Timeline
from trainflash.profile.events import Kind
from trainflash.schema.profile_ops import GapBeforeOp, GapRegionContext, HostActivity
from trainflash.schema.profile_times import IdleCauseName

MOST_ACTIVITIES = 5
MOST_CONTEXTS_EACH = 3


@dataclass
class _Group:
    count: int = 0
    total: int = 0
    longest: int = 0
    causes: dict[str, int] = field(default_factory=dict)
    activity: dict[str, int] = field(default_factory=dict)
    regions: dict[str, list[int]] = field(default_factory=dict)  # path → [gaps, their whole length, in common]


def gaps(
    timelines: Sequence[Timeline],
    causes: Sequence[dict[IdleCauseName, Spans]],
    regions: Sequence[Regions],
    limit: int,
    limits: Thresholds = DEFAULT,
) -> tuple[tuple[GapBeforeOp, ...], tuple[GapRegionContext, ...]]:
    """Gaps of a microsecond and more, grouped by the op that follows, longest sum first; and the regions that they lie in."""
    found: dict[tuple[str, str], _Group] = {}
    members = [_members(timeline, limits) for timeline in timelines]
    for each in members:
        for payload, marker, count, total, longest in each.groups():
            group = found.setdefault((payload, marker), _Group())
            group.count += count
            group.total += total
            group.longest = max(group.longest, longest)
    ordered = sorted(found, key=lambda key: (-found[key].total, key))[:limit]
    wanted = {key: found[key] for key in ordered}
    for each, timeline, why, mine in zip(members, timelines, causes, regions, strict=True):
        _explain(wanted, each, timeline, why, mine)
    answers = tuple(_gap(payload, marker, wanted[payload, marker]) for payload, marker in ordered)
    return answers, _contexts([(payload, wanted[payload, marker]) for payload, marker in ordered])


@dataclass(frozen=True)
class _Members:
    """Gaps of one device; payloads and markers are codes of strings."""

    start: np.ndarray
    end: np.ndarray
    payload: np.ndarray
    marker: np.ndarray
    strings: tuple[str, ...]

    def groups(self):
        """(payload, marker, count, sum, longest) of each pair of ops."""
        payload, marker, which = pairs(self.payload, self.marker)
        length = self.end - self.start
        longest = np.zeros(len(payload), np.int64)
        np.maximum.at(longest, which, length)
        columns = np.bincount(which, minlength=len(payload)), summed(which, length, len(payload)), longest
        names = ([self.strings[code] for code in codes.tolist()] for codes in (payload, marker))
        return zip(*names, *(column.tolist() for column in columns), strict=True)

    def numbers(self, keys: dict[tuple[str, str], int]) -> np.ndarray:
        """The number of each gap's pair in `keys`, -1 for one that is not there."""
        payload, marker, which = pairs(self.payload, self.marker)
        known = [
            keys.get((self.strings[left], self.strings[right]), -1) for left, right in zip(payload.tolist(), marker.tolist(), strict=True)
        ]
        return np.asarray(known, np.int64)[which]


def _members(timeline: Timeline, limits: Thresholds) -> _Members:
    """The gaps of one device that an op follows."""
    rank, device, idle = timeline.rank, timeline.device, timeline.idle
    following = np.searchsorted(device.start, idle.end, side="left")
    real = (following < len(device)) & (idle.end - idle.start >= limits.gap_ns) & (idle.end < timeline.window[1])
    following = following[real]
    names = rank.trace.events.name[device.row]
    heavy = ~rank.named(device.row, words.is_light) & (device.end - device.start >= limits.payload_ns)
    payload = following.copy()
    for _ in range(limits.payload_ahead):
        onward = (payload < len(device) - 1) & ~heavy[payload]
        payload = payload + onward
    payload = np.where(heavy[payload], payload, following) if len(payload) else payload
    return _Members(idle.start[real], idle.end[real], names[payload], names[following], rank.trace.strings)


def _explain(wanted: dict[tuple[str, str], _Group], members: _Members, timeline: Timeline, causes: dict, regions: Regions) -> None:
    keys = list(wanted)
    number = {key: place for place, key in enumerate(keys)}
    of = members.numbers(number)
    chosen = np.flatnonzero(of >= 0)
    if not len(chosen):
        return
    start, end, of = (each if len(chosen) == len(each) else each[chosen] for each in (members.start, members.end, of))
    here = Spans(start, end)  # in order, as the gaps of a device are
    for cause, spans in causes.items():
        inside = spans.inside(here.start, here.end)
        for group in np.unique(of[inside > 0]).tolist():
            into = wanted[keys[group]].causes
            into[cause] = into.get(cause, 0) + int(inside[of == group].sum())
    _activities(wanted, keys, here, of, timeline)
    _regions(wanted, keys, here, of, timeline, regions)


def _activities(wanted, keys, here: Spans, of: np.ndarray, timeline: Timeline) -> None:
    """What the innermost host events of driving threads were meanwhile."""
    rank = timeline.rank
    rows = rank.on_leading(rank.rows(Kind.HOST_OP, Kind.RUNTIME, Kind.DRIVER, Kind.PYTHON, Kind.ANNOTATION))
    meets = np.searchsorted(here.end, rank.start[rows], side="right") < np.searchsorted(here.start, rank.end[rows], side="left")
    rows = rows[meets]  # what meets no gap is the innermost in none, and hides nothing there
    rows = rows[~rank.trace.column("step").has(rows)]
    parts = []
    for start, end, event in rank.nest(rows).segments():
        segment, gap, length = overlapping_pairs(start, end, here)
        parts.append(_summed(of[gap], rank.trace.events.name[rows[event[segment]]], length))
    for group, code, total in largest(*_together(parts), MOST_ACTIVITIES * 2):
        name = rank.trace.strings[code]
        into = wanted[keys[group]].activity
        into[name] = into.get(name, 0) + total


def _regions(wanted, keys, here: Spans, of: np.ndarray, timeline: Timeline, regions: Regions) -> None:
    rank = timeline.rank
    leading = np.isin(regions.tree.track, rank.leading_tracks) if len(regions.tree) else np.empty(0, bool)
    parts = []
    for start, end, event in regions.tree.segments():
        keep = leading[event]
        segment, gap, length = overlapping_pairs(start[keep], end[keep], here)
        parts.append(_summed(gap, regions.paths.of[event[keep][segment]], length))
    gap, path, length = _together(parts)
    inside = summed_pairs(of[gap], path, gap, length, here.end - here.start)
    for group, where, count, reach, common in inside:
        sums = wanted[keys[group]].regions.setdefault(regions.text(where), [0, 0, 0])
        for column, value in enumerate((count, reach, common)):
            sums[column] += value


def _summed(left: np.ndarray, right: np.ndarray, amount: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(left, right, sum) of the distinct pairs."""
    one, other, which = pairs(left, right)
    return one, other, summed(which, amount, len(one))


def _together(parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    columns = zip(*parts, strict=True) if parts else ([], [], [])
    left, right, amount = (np.concatenate(column) if len(column) else np.empty(0, np.int64) for column in columns)
    return left, right, amount


def summed_pairs(group: np.ndarray, path: np.ndarray, gap: np.ndarray, length: np.ndarray, whole: np.ndarray):
    """(group, path, how many gaps, their whole length, nanoseconds in common) for each group and path that meet."""
    each, where, which = pairs(gap, path)
    groups = np.zeros(len(each), np.int64)
    groups[which] = group
    common = summed(which, length, len(each))
    groups, paths, pair = pairs(groups, where)
    number = len(groups)
    columns = (np.bincount(pair, minlength=number), summed(pair, whole[each], number), summed(pair, common, number))
    return zip(groups.tolist(), paths.tolist(), *(column.tolist() for column in columns), strict=True)


def _gap(payload: str, marker: str, group: _Group) -> GapBeforeOp:
    busiest = sorted(group.activity.items(), key=lambda item: (-item[1], item[0]))[:MOST_ACTIVITIES]
    return GapBeforeOp(
        name=payload,
        count=group.count,
        total_gap_duration=us(group.total),
        max_gap_duration=us(group.longest),
        avg_gap_duration=us(group.total / group.count),
        payload_op=payload,
        marker_op=marker,
        causes={cause: us(total) for cause, total in sorted(group.causes.items(), key=lambda item: (-item[1], item[0]))},
        host_activity=tuple(HostActivity(name, us(total)) for name, total in busiest),
    )


def _contexts(groups: Sequence[tuple[str, _Group]]) -> tuple[GapRegionContext, ...]:
    answers = []
    for payload, group in groups:
        ordered = sorted(group.regions.items(), key=lambda item: (-item[1][2], item[0]))[:MOST_CONTEXTS_EACH]
        for path, (count, whole, inside) in ordered:
            answers.append(GapRegionContext(payload, path, count, us(whole), us(inside), us(whole / count)))
    return tuple(sorted(answers, key=lambda each: (-each.total_overlap_duration, each.op_name, each.region_path)))
