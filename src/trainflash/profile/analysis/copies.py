"""Copies by direction and kind of host memory."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from trainflash.profile.analysis.breakdown import Timeline
from trainflash.profile.analysis.figures import us
from trainflash.profile.analysis.intervals import clipped, union, without
from trainflash.profile.analysis.view import Work
from trainflash.profile.events import Kind
from trainflash.schema.profile_ops import CopyStat

_DIRECTIONS = (("HtoD", "H2D"), ("DtoH", "D2H"), ("DtoD", "D2D"), ("PtoP", "P2P"), ("HtoH", "H2H"), ("HtoA", "H2D"), ("AtoH", "D2H"))
_DIRECTIONS += (("M2D", "H2D"), ("D2M", "D2H"))
_BETWEEN = re.compile(r"\((?P<source>[A-Za-z]+)\s*->\s*(?P<target>[A-Za-z]+)\)")
_SIDES = {"host": "H", "device": "D", "pageable": "H", "pinned": "H", "unified": "D", "managed": "D"}


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


def copies(timelines: Sequence[Timeline]) -> tuple[CopyStat, ...]:
    """Copies and memsets within the windows, costliest first; all ranks together."""
    found: dict[tuple[str, bool | None], list[int]] = {}
    for timeline in timelines:
        rank, device = timeline.rank, timeline.rank.device
        mine = np.flatnonzero((device.work == Work.COPY) & (device.end > timeline.window[0]) & (device.start < timeline.window[1]))
        rows = device.row[mine]
        sizes = rank.trace.column("bytes")
        source, target = (rank.trace.column(f"memory_kind_{end}") for end in ("src", "dst"))
        keys = np.stack((rank.trace.events.name[rows], rank.trace.events.kind[rows], source.take(rows, -1), target.take(rows, -1)))
        distinct, place = np.unique(keys, axis=1, return_inverse=True)
        place = place.ravel()
        for at, (name, kind, from_, to) in enumerate(distinct.T.tolist()):
            text = [rank.trace.strings[code] if code >= 0 else None for code in (name, from_, to)]
            key = direction(text[0] or "", kind, text[1], text[2])
            here = mine[place == at]
            start, end = device.start[here], device.end[here]
            known = sizes.has(device.row[here])
            moved = sizes.take(device.row[here], 0)
            alone = without(clipped(union(start, end), timeline.window), timeline.compute)
            sums = found.setdefault(key, [0, 0, 0, 0, 0, 0])
            added = (len(here), int((end - start).sum()), int(known.sum()), int(moved.sum()), int((end - start)[known].sum()), alone.total)
            for column, value in enumerate(added):
                sums[column] += value
    answers = []
    for (way, pinned), (count, total, sized, moved, sized_ns, alone) in found.items():
        answers.append(
            CopyStat(
                direction=way,
                pinned=pinned,
                count=count,
                total_duration=us(total),
                bytes_total=moved if sized == count else None,
                bandwidth_gb_s=round(moved / sized_ns, 3) if sized and sized_ns else None,
                exposed_us=us(alone),
            )
        )
    return tuple(sorted(answers, key=lambda each: (-each.total_duration, each.direction, str(each.pinned))))
