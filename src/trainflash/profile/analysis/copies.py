"""Copies by direction and kind of host memory."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from trainflash.profile.analysis.figures import us
from trainflash.profile.analysis.intervals import union, without
from trainflash.profile.analysis.step_marks import RankSteps
from trainflash.profile.analysis.thresholds import DEFAULT, Thresholds
from trainflash.profile.analysis.timeline import Timeline
from trainflash.profile.analysis.view import Work
from trainflash.profile.events import Kind
from trainflash.schema.profile_ops import CopyStat

_DIRECTIONS = (("HtoD", "H2D"), ("DtoH", "D2H"), ("DtoD", "D2D"), ("PtoP", "P2P"), ("HtoH", "H2H"), ("HtoA", "H2D"), ("AtoH", "D2H"))
_DIRECTIONS += (("M2D", "H2D"), ("D2M", "D2H"), ("S2D", "H2D"), ("D2S", "D2H"), ("HostToDevice", "H2D"), ("DeviceToHost", "D2H"))
_DIRECTIONS += (("DeviceToDevice", "D2D"), ("HostToHost", "H2H"), ("PeerToPeer", "P2P"))
_BETWEEN = re.compile(r"\((?P<source>[A-Za-z]+)\s*->\s*(?P<target>[A-Za-z]+)\)")
_SIDES = {"host": "H", "device": "D", "pageable": "H", "pinned": "H", "memory": "H", "shared": "H", "unified": "D", "managed": "D"}


def direction(name: str, kind: int, source: str | None = None, target: str | None = None) -> tuple[str, bool | None]:
    """(H2D, D2H, D2D, P2P, set or other; whether its host memory is pinned) by the name, or by the memory kinds that stand beside it."""
    if kind == Kind.MEMSET:
        return "set", None
    told = _BETWEEN.search(name)
    ends = [text.lower() for text in ((told["source"], told["target"]) if told else (source or "", target or ""))]
    pinned = True if "pinned" in ends else False if "pageable" in ends else None
    for word, answer in _DIRECTIONS:
        if word in name or answer in name:
            return answer, pinned
    sides = [_SIDES.get(end) for end in ends]
    return (f"{sides[0]}2{sides[1]}", pinned) if all(sides) else ("other", pinned)


def copies(devices: Sequence[tuple[Timeline, RankSteps]], limits: Thresholds = DEFAULT) -> tuple[CopyStat, ...]:
    """Copies and memsets within the windows, costliest first; all devices together."""
    found: dict[tuple[str, bool | None], list[int]] = {}
    when: dict[tuple[str, bool | None], list[np.ndarray]] = {}
    for number, (timeline, _) in enumerate(devices):
        rank, device = timeline.rank, timeline.device
        inside = timeline.inside
        copying = device.work[inside.at] == Work.COPY
        mine, start, end = inside.at[copying], inside.start[copying], inside.end[copying]
        rows = device.row[mine]
        sizes = rank.trace.column("bytes")
        source, target = (rank.trace.column(f"memory_kind_{end}") for end in ("src", "dst"))
        keys = np.stack((rank.trace.events.name[rows], rank.trace.events.kind[rows], source.take(rows, -1), target.take(rows, -1)))
        distinct, place = np.unique(keys, axis=1, return_inverse=True)
        place = place.ravel()
        for at, (name, kind, from_, to) in enumerate(distinct.T.tolist()):
            text = [rank.trace.strings[code] if code >= 0 else None for code in (name, from_, to)]
            key = direction(text[0] or "", kind, text[1], text[2])
            same = place == at
            here = mine[same]
            known = sizes.has(rows[same])
            moved = sizes.take(rows[same], 0)
            together = union(start[same], end[same])
            took, moving = end[same] - start[same], (device.end - device.start)[here[known]]  # the bytes of a copy move in all of its time
            alone = without(together, timeline.compute)
            when.setdefault(key, [np.empty(0, np.int64) for _ in devices])
            when[key][number] = np.append(when[key][number], start[same])
            sums = found.setdefault(key, [0] * 7)
            added = (
                len(here),
                int(took.sum()),
                int(known.sum()),
                int(moved.sum()),
                int(moving.sum()),
                alone.total,
                together.total - alone.total,
            )
            for column, value in enumerate(added):
                sums[column] += value
    answers = []
    for (way, pinned), (count, total, sized, moved, sized_ns, alone, beside) in found.items():
        answers.append(
            CopyStat(
                direction=way,
                pinned=pinned,
                count=count,
                total_duration=us(total),
                bytes_total=moved if sized == count else None,
                bandwidth_gb_s=round(moved / sized_ns, 3) if sized and sized_ns else None,
                exposed_us=us(alone),
                hidden_us=us(beside),
                recurs=_recurs(when[way, pinned], devices, limits),
            )
        )
    return tuple(sorted(answers, key=lambda each: (-each.total_duration, each.direction, str(each.pinned))))


def _recurs(when: Sequence[np.ndarray], devices: Sequence[tuple[Timeline, RankSteps]], limits: Thresholds) -> bool | None:
    """Whether copies that begin at these instants, by device, come again on one of the devices; None where no device can tell."""
    told = [_on_one(start, timeline, steps, limits) for start, (timeline, steps) in zip(when, devices, strict=True) if len(start)]
    return True if True in told else None if None in told else False


def _on_one(start: np.ndarray, timeline: Timeline, steps: RankSteps, limits: Thresholds) -> bool | None:
    within = (steps.start >= timeline.window[0]) & (steps.start < timeline.window[1])
    if within.sum() == 1:
        return None
    if within.any():
        return len(np.unique(np.searchsorted(steps.start[within], start, side="right"))) > 1
    computing = timeline.compute
    ahead = len(computing) > 0 and start.max() < computing.start[0]  # of a model that is brought to the device before it computes
    return not ahead and bool(start.max() - start.min() >= limits.recurring * timeline.whole.total)
