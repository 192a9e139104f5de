"""What one start saw of a whole run: windows up to its last step, and untimed steps between them that count as the windows beside them."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from trainflash.bench.estimate import Measured, Slice, after, section, times_ms
from trainflash.schema import Side, Start

ENOUGH = 16  # slices that say when steps change; fewer are cut into rows
ROWS = 48
LEAST_ROW = 10  # steps

Row = tuple[int, int, float, float, float, float, float | None, float | None]
"""First step and steps (of the baseline); milliseconds of a step of both sides: mean, median, and by the program's own CPU time."""


@dataclass(frozen=True)
class _Seen:
    """One side, from the warm-up on. Steps that evaluate or save (`interrupted`) are left out where not all steps were timed."""

    slices: Sequence[Slice]
    interrupted: Set[int]
    whole: bool

    def ns(self, clock: str) -> float:
        """Nanoseconds of all steps, those that were passed as the windows before and after them."""
        means = [None if piece.part == "passed" else self.mean_ns(piece, clock) for piece in self.slices]
        total = 0.0
        for at, (piece, mean) in enumerate(zip(self.slices, means, strict=True)):
            if mean is None:
                beside = [next((m for m in line if m is not None), None) for line in (reversed(means[:at]), means[at + 1 :])]
                known = [m for m in beside if m is not None]
                mean = statistics.fmean(known) if known else 0.0
            total += mean * piece.steps
        return total

    def mean_ns(self, piece: Slice, clock: str) -> float:
        return 1e6 * statistics.fmean(times_ms(piece, clock) if self.whole else usual_ms(piece, clock, self.interrupted))


def extended(start: Start, measured: Mapping[Side, Measured], warmup: int, interrupted: Mapping[Side, Set[int]]) -> Start:
    """`start` with what it saw of the run from the `warmup` steps of the baseline on; unchanged where it saw only early steps."""
    ours, theirs = measured["baseline"], measured["candidate"]
    ended = ours.ended_at is not None
    if start.y is None or not (ended or any(piece.part == "far" for piece in ours.slices)):
        return start
    pairs = _pairs(ours, theirs, warmup)
    passed = sum(a.steps for a, _ in pairs if a.part == "passed")
    sides = {
        side: _Seen([pair[at] for pair in pairs], interrupted[side], not passed) for at, side in enumerate(("baseline", "candidate"))
    }  # fmt: skip
    done = math.log(sum(b.steps for _, b in pairs) * theirs.work / (sum(a.steps for a, _ in pairs) * ours.work))
    y, y_wall = (math.log(sides["baseline"].ns(clock) / sides["candidate"].ns(clock)) + done for clock in (start.clock, "wall"))
    timed = [(a, b) for a, b in pairs if a.part != "passed"]
    ratios = [math.log(sides["baseline"].mean_ns(a, start.clock) / sides["candidate"].mean_ns(b, start.clock)) for a, b in timed]
    start = replace(
        start,
        last_step=pairs[-1][0].first + pairs[-1][0].steps,
        passed=passed,
        y_run=y,
        y_run_wall=y_wall,
        scatter_run=scatter(ratios),
        far_s=sum(_far_ns(a, b) for a, b in pairs) / 1e9,
    )
    if not ended:
        return start
    seconds = {side: _run_s(measured[side], sides[side], start.clock) for side in sides}
    return replace(start, run_steps=ours.ended_at, baseline_run_s=seconds["baseline"], candidate_run_s=seconds["candidate"])


def rows(start: Start, measured: Mapping[Side, Measured], warmup: int, interrupted: Mapping[Side, Set[int]]) -> list[Row]:
    """How long the steps of both sides took along the run; per baseline step's work where the sides differ in it."""
    ours, theirs = measured["baseline"], measured["candidate"]
    pairs = [(a, b) for a, b in _pairs(ours, theirs, warmup) if a.part != "passed"]
    total = sum(a.steps for a, _ in pairs)
    most = total if len(pairs) >= ENOUGH else max(LEAST_ROW, total // ROWS)
    found: list[Row] = []
    scale = ours.work / theirs.work
    for a, b in pairs:
        count = max(1, round(a.steps / most))
        alone = count == 1 and not _holds(a, interrupted["baseline"]) and not _holds(b, interrupted["candidate"])
        own = alone and ours.paced and theirs.paced and not ours.device and a.cpu_ns > 0 and b.cpu_ns > 0
        for piece, other in zip(_cut(a, count), _cut(b, count), strict=True):
            x, y = usual_ms(piece, start.clock, interrupted["baseline"]), usual_ms(other, start.clock, interrupted["candidate"])
            cpu = (a.cpu_ns / a.steps / 1e6, scale * b.cpu_ns / b.steps / 1e6) if own else (None, None)
            means, medians = (statistics.fmean(x), scale * statistics.fmean(y)), (statistics.median(x), scale * statistics.median(y))
            found.append((piece.first, piece.steps, *means, *medians, *cpu))
    return found


def usual_ms(piece: Slice, clock: str, interrupted: Set[int]) -> list[float]:
    """Milliseconds of the steps that neither evaluate nor save; of all, where none is left."""
    times = times_ms(piece, clock)
    return [ms for at, ms in enumerate(times, piece.first) if at not in interrupted] or times


def _holds(piece: Slice, interrupted: Set[int]) -> bool:
    return any(piece.first <= step < piece.first + piece.steps for step in interrupted)


def _pairs(ours: Measured, theirs: Measured, warmup: int) -> list[tuple[Slice, Slice]]:
    theirs_from = round(warmup * ours.work / theirs.work)
    pairs = [(after(a, warmup), after(b, theirs_from)) for a, b in zip(ours.slices, theirs.slices, strict=True)]
    return [(a, b) for a, b in pairs if a.steps and b.steps and a.first >= warmup]


def _far_ns(a: Slice, b: Slice) -> int:
    return 0 if a.part == "early" else max(a.wall_ns, b.wall_ns) if a.part == "passed" else a.wall_ns + b.wall_ns


def _cut(piece: Slice, count: int) -> list[Slice]:
    edges = [round(part * piece.steps / count) for part in range(count + 1)]
    return [section(piece, begin, end) for begin, end in itertools.pairwise(edges)] if count > 1 else [piece]


def _run_s(side: Measured, seen: _Seen, clock: str) -> float:
    """Seconds from the start of the process to its end, without waits for a core where they are known."""
    counted = sum(piece.steps for piece in seen.slices)
    before, left = 0.0, sum(piece.steps for piece in side.slices) - counted
    for piece in side.slices:
        times = times_ms(piece, clock)[:left]
        before, left = before + sum(times) / 1e3, left - len(times)
    return side.startup_s - side.startup_wait_s + before + seen.ns(clock) / 1e9 + side.slices[-1].after_ns / 1e9


def scatter(ratios: Sequence[float]) -> float | None:
    """Standard error of the mean ratio, by how each differs from its neighbours: a trend is no noise."""
    if len(ratios) < 5:
        return None
    bends = [(before - 2 * here + after) ** 2 for before, here, after in zip(ratios, ratios[1:], ratios[2:], strict=False)]
    return math.sqrt(statistics.fmean(bends) / 6 / len(ratios))
