"""What the computing itself cost in the steady part: synchronisation, compilation, collection, recomputation, memory."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from trainflash.schema import (
    PHASES,
    Collections,
    Compilation,
    ForwardRepeat,
    FrozenRepeat,
    InVain,
    Location,
    Memory,
    PhaseStat,
    Recompute,
    Started,
    Struck,
    SyncPoint,
)
from trainflash.summary import census
from trainflash.summary.steady import NS_PER_MS, Steady
from trainflash.trace import RankTrace
from trainflash.trace.computing import ComputeTrace, Counter, GcTrace, StartTrace

MOST_POINTS = 50
MOST_REASONS = 5
BY_SHAPE = re.compile(
    r"size mismatch|stride mismatch|rank mismatch|\.size\(|\.shape|\.stride\(|\bs\d+\b|== -?\d+$|expected \d+, actual \d+"
)

BY_ATTRIBUTE = re.compile(r"[\w\])]\.(?!ndim )\w+ == -?\d+$")


def compute_facts(rank: RankTrace, part: Steady, phases: dict[str, PhaseStat]) -> dict[str, Any]:
    """Fields of `Summary` about computing, by name."""
    seen = rank.computing
    if seen is None:
        return {}
    grown = _Growth(rank, part)
    return {
        "sync_points": _sync_points(seen, part, grown, rank.device),
        "compilation": _compilation(seen, part),
        "collections": _collections(seen, part, grown),
        "recompute": _recompute(seen, part, grown),
        "undone_layout": seen.undone_layout,
        "forward_repeats": _forward_repeats(seen, phases),
        "frozen_repeats": _frozen_repeats(seen, rank, part),
        "in_vain": _in_vain(seen, phases),
        "started": _started(seen, part, grown),
        "memory": _memory(seen, part, grown),
        "attention": census.attention(seen, phases),
        "ignored_targets": census.ignored_targets(seen, phases),
        "operators": census.operators(seen),
        "updates": census.updates(seen),
        "parts": seen.parts,
        "numerics": seen.numerics,
    }


class _Growth:
    """How much counters grew in the steps that count. Readings are seconds apart, so between two of them each step takes an equal part:
    a slow step is no reason to have called anything more often.
    """

    def __init__(self, rank: RankTrace, part: Steady) -> None:
        self._starts = rank.step_start_ns
        self._part = part

    def read(self, counter: Counter) -> float | None:
        """None for a counter with fewer than two readings."""
        if len(counter.t_ns) < 2:
            return None
        at = np.interp(counter.t_ns, self._starts, np.arange(len(self._starts)))
        edges = [(self._part.first, self._part.last), *((step, step + 1) for step, _, _ in self._part.left_out)]
        whole, *out = [float(np.diff(np.interp(edge, at, counter.value))[0]) for edge in edges]
        return max(0.0, whole - sum(out))

    def __call__(self, counter: Counter) -> float:
        """The same, 0 where it was not read."""
        return self.read(counter) or 0.0


def _sync_points(seen: ComputeTrace, part: Steady, grown: _Growth, device: str) -> tuple[SyncPoint, ...]:
    found = []
    for sync in seen.syncs:
        count, ns = grown(sync.count), grown(sync.ns)
        if count < 0.5 or (sync.call == "empty_cache" and not device.startswith("cuda")):
            continue
        found.append(
            SyncPoint(
                location=sync.location,
                call=sync.call,
                count=round(count),
                mean_ms=ns / count / NS_PER_MS,
                share=ns / part.wall_ns,
                on_device=sync.on_device,
                phase=sync.phase,
            )
        )
    return tuple(sorted(found, key=lambda point: -point.share)[:MOST_POINTS])


def _compilation(seen: ComputeTrace, part: Steady) -> Compilation | None:
    done = seen.compilation
    if done is None:
        return None
    steady = part.holds(done.start_ns)
    spans = done.ns[steady] if steady.any() else done.ns
    return Compilation(
        frames=len(done.ns) or done.frames,
        steady=int(steady.sum()),
        share=float(done.ns[steady].sum()) / part.wall_ns,
        mean_ms=float(spans.mean()) / NS_PER_MS if len(spans) else None,
        graph_breaks=done.graph_breaks,
        reasons=done.reasons[:MOST_REASONS],
        by_shape=any(BY_SHAPE.search(reason) and not BY_ATTRIBUTE.search(reason) for reason in done.reasons),
        limit_hit=done.limit_hit,
        location=done.location,
        by_attribute=any(BY_ATTRIBUTE.search(reason) for reason in done.reasons),
    )


def _collections(seen: ComputeTrace, part: Steady, grown: _Growth) -> Collections | None:
    done = seen.collections
    if done is None:
        return None
    count = sum(grown(generation) for generation in done.counts)
    ns, called = grown(done.ns), grown(done.called)
    return Collections(
        count=round(count),
        full=round(grown(done.counts[2])),
        share=ns / part.wall_ns,
        mean_ms=ns / count / NS_PER_MS if count >= 0.5 else 0.0,
        called=round(called),
        location=done.location if called >= 0.5 else None,
        struck=_struck(done, ns / part.wall_ns),
    )


def _struck(done: GcTrace, share: float) -> tuple[Struck, ...]:
    """The places that long collections came at, as parts of all collections' share."""
    whole = sum(ns for _, _, _, ns in done.struck)
    found = [Struck(phase, location, times, share * ns / whole) for phase, location, times, ns in done.struck if whole]
    return tuple(sorted(found, key=lambda each: -each.share)[:MOST_REASONS])


def _recompute(seen: ComputeTrace, part: Steady, grown: _Growth) -> tuple[Recompute, ...]:
    found = []
    for line in seen.recompute:
        calls, steps = grown(line.calls), grown(line.steps)
        if calls >= 0.5 and steps > 0:
            found.append(Recompute(line.location, calls / steps, grown(line.ns) / part.wall_ns))
    return tuple(sorted(found, key=lambda line: -line.share))


def _forward_repeats(seen: ComputeTrace, phases: dict[str, PhaseStat]) -> tuple[ForwardRepeat, ...]:
    """What backward does for a repeated call is as much again of backward's time."""
    forward, backward = (phases[name].share if name in phases else 0.0 for name in ("Fwd", "Bwd"))
    found = []
    for each in seen.forward_repeats:
        known = _in_modules(each.modules_ns, phases)
        found.append(ForwardRepeat(each.location, each.per_step, known * (each.part * forward + each.recorded * backward)))
    return tuple(found)


def _frozen_repeats(seen: ComputeTrace, rank: RankTrace, part: Steady) -> tuple[FrozenRepeat, ...]:
    """By all samples below the line that calls such a network."""
    samples = rank.samples
    if samples.stack is None or not samples.stacks:
        return ()
    found = []
    for each in seen.frozen:
        if each.location is None or not each.rows:
            continue
        place = each.location.file, each.location.line
        below = np.array([any((frame.location.file, frame.location.line) == place for frame in stack) for stack in samples.stacks])
        inside = part.keeps(samples.step) & (samples.stack >= 0)
        inside[inside] = below[samples.stack[inside]]
        again = each.again / each.rows
        for phase in ("Fwd", "Eval"):
            ns = float(samples.weight_ns[inside & (samples.phase == PHASES.index(phase))].sum())
            if ns:
                found.append(FrozenRepeat(each.location, phase, each.of_calls * again * ns / part.wall_ns, again, each.rows))
    return tuple(sorted(found, key=lambda repeat: -repeat.share))


def _in_modules(modules_ns: float, phases: dict[str, PhaseStat]) -> float:
    """The part of forward whose modules were seen: what a library computes beside modules is no part of a share of them."""
    forward_ns = phases["Fwd"].mean_ms * NS_PER_MS if "Fwd" in phases else 0.0
    return min(1.0, modules_ns / forward_ns) if forward_ns else 1.0


def _in_vain(seen: ComputeTrace, phases: dict[str, PhaseStat]) -> tuple[InVain, ...]:
    backward = phases["Bwd"].share if "Bwd" in phases else 0.0
    return tuple(
        InVain(each.location, each.direct, each.per_step, _in_modules(each.modules_ns, phases) * each.recorded * backward, each.held)
        for each in seen.in_vain
    )


def _started(seen: ComputeTrace, part: Steady, grown: _Growth) -> tuple[Started, ...]:
    groups: dict[tuple[Location | None, str], list[StartTrace]] = {}
    for line in seen.starts:
        groups.setdefault((line.made, line.what), []).append(line)
    found = []
    for (made, what), rows in groups.items():
        spent = sorted(
            ((row.location, grown(row.ns) / part.wall_ns) for row in rows if row.location is not None), key=lambda each: -each[1]
        )
        share = sum(grown(row.ns) for row in rows) / part.wall_ns
        found.append(Started(made, what, round(sum(grown(row.count) for row in rows)), share, tuple(spent)))
    return tuple(sorted((each for each in found if each.count), key=lambda each: -each.share))


def _memory(seen: ComputeTrace, part: Steady, grown: _Growth) -> Memory | None:
    read = seen.memory
    if read is None:
        return None
    device = read.device or {}
    faults = grown.read(read.faults)
    stalled = grown.read(read.stalled_us) if read.stalled_us is not None else None
    emptied = [sync for sync in seen.syncs if sync.call == "empty_cache"]
    costliest = max(emptied, key=lambda sync: grown(sync.ns), default=None)
    return Memory(
        host_peak_bytes=read.peak_bytes,
        host_limit_bytes=read.limit_bytes,
        pressure_share=None if stalled is None else stalled * 1e3 / part.wall_ns,
        limit_events=int(read.events.value[-1] - read.events.value[0]) if read.events is not None and len(read.events.value) > 1 else None,
        major_faults=None if faults is None else faults / max(1, len(part.kept)),
        swapped_bytes=read.swapped_bytes,
        device_peak_bytes=device.get("peak"),
        device_reserved_bytes=device.get("reserved"),
        device_total_bytes=device.get("total"),
        alloc_retries=device.get("retries"),
        empty_cache_calls=round(sum(grown(sync.count) for sync in emptied)),
        empty_cache_share=sum(grown(sync.ns) for sync in emptied) / part.wall_ns,
        empty_cache_at=costliest.location if costliest is not None else None,
    )
