"""One start → one `y`: pure arithmetic on the slices that the two programs reported."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from trainflash import stats
from trainflash.schema import Start

NET_CPU_LIMIT = 1.1  # more CPU than 1.1 × net time: the program's own threads compete for cores, and that wait is its cost
CPU_TICK_S = 0.02  # the kernel rounds the CPU time of other processes to ticks of 10 ms
LONG_WARMUP = 4 * stats.WARMUP_WINDOW  # a first slice longer than that was asked for, to pass the first epoch
TRIM_SLICES = 5  # fewer slices than that have nothing to trim
LEAST_STEPS = 20  # per side and start, after the warm-up
TOO_SHORT = "too few steps"
SAME_STEPS = "the two sides did not train the same number of steps"
BY_TIME = "if its length depends on time, give it a number of steps"
Part = Literal["early", "far", "passed"]  # far: after the early steps; passed: untimed, both sides at once


@dataclass(frozen=True)
class Slice:
    """Some steps of one program in one go. Nanoseconds; `runq_ns` is time without a core, None where the kernel does not tell.

    `cpu_ns` is of the training process and its reaped children, `own_cpu_ns` of the training process alone.
    """

    first: int  # steps complete before it
    step_ns: tuple[int, ...]
    step_runq_ns: tuple[int, ...] | None
    wall_ns: int
    runq_ns: int | None
    cpu_ns: int
    own_cpu_ns: int
    ended: bool  # the program was over before all steps asked for were done
    thread_cpu_ns: int | None = None  # of the training thread alone
    part: Part = "early"
    after_ns: int = 0  # from the last step to the end of the program, without waits for a core

    @property
    def steps(self) -> int:
        return len(self.step_ns)

    @classmethod
    def of(cls, report: Mapping[str, Any], part: Part = "early") -> Slice:
        """The slice of one report of the pacer."""
        waits = report["step_runq_ns"]
        return cls(
            first=report["step"] - report["steps"],
            step_ns=tuple(report["step_ns"]),
            step_runq_ns=None if waits is None else tuple(waits),
            wall_ns=report["wall_ns"],
            runq_ns=report["runq_ns"],
            cpu_ns=report["cpu_ns"],
            own_cpu_ns=report["own_cpu_ns"],
            ended=bool(report.get("ended")),
            thread_cpu_ns=report.get("thread_cpu_ns"),
            part=part,
            after_ns=report.get("after_ns") or 0,
        )


@dataclass(frozen=True)
class Measured:
    """One program of a start. `slices[0]` is the warm-up; `tree_cpu_s` covers the other early slices, all processes of the tree."""

    slices: tuple[Slice, ...]
    startup_s: float
    tree_cpu_s: float | None
    processes: int | None
    device: bool
    paced: bool = True  # False: several processes train, only wall time is known
    work: float = 1.0  # samples (or tokens) of one step, where the two sides differ in it
    pinned: bool = False  # each busy process had a core of its own
    peak_bytes: int | None = None  # of host memory, all processes
    device_peak_bytes: int | None = None
    startup_wait_s: float = 0.0  # of the start-up, what the training thread waited for a core

    @property
    def early(self) -> tuple[Slice, ...]:
        """The slices of the first look, the warm-up among them."""
        return tuple(piece for piece in self.slices if piece.part == "early")

    @property
    def ended_at(self) -> int | None:
        """How many steps the program has, if it came to its end."""
        last = self.slices[-1]
        return last.first + last.steps if last.ended else None

    def step_times(self) -> list[float]:
        """All early step times from the first slice on, ns; net of waiting for a core where that is known."""
        times: list[float] = []
        for piece in self.early:
            waits = piece.step_runq_ns or (0,) * piece.steps
            times.extend(wall - wait for wall, wait in zip(piece.step_ns, waits, strict=True))
        return times


def warmup_of(baseline: Measured, candidate: Measured) -> int | None:
    """Steps of the baseline to drop, and as much work of the candidate; the larger of what the two need. None: one side is not steady.

    Short runs get the least there is.
    """
    found = []
    for side in (baseline, candidate):
        passed = side.slices[0].steps > LONG_WARMUP  # it took a whole epoch: what fills in that time is no part of the steady steps
        before = side.slices[0].first + (side.slices[0].steps if passed else 0)
        times = side.step_times()[side.slices[0].steps if passed else 0 :]
        if len(times) < 4 * stats.WARMUP_WINDOW:
            own = before if passed else stats.WARMUP_LEAST
        else:
            drop = stats.find_warmup(times)
            drop = _from_the_middle(times) if drop is None else drop
            if drop is None:
                return None
            own = before + drop if drop > stats.WARMUP_LEAST else max(stats.WARMUP_LEAST, before if passed else 0)
        found.append(math.ceil(own * side.work / baseline.work))
    return max(found)


def _from_the_middle(times: Sequence[float]) -> int | None:
    """Steady from the middle on, perhaps: on a busy machine other work may have slowed the first half. None: not even then.

    Measured on steady steps with a machine's noise: windows call 15 to 37 % of runs of 40 to 60 steps unsteady, so too few steps for
    windows only have to show no sure fall.
    """
    middle = len(times) // 2
    rest = times[middle:]
    if len(rest) < 4 * stats.WARMUP_WINDOW:
        return None if stats.still_falls(rest) else middle
    later = stats.find_warmup(rest)
    return None if later is None else middle + later


def estimate(
    n: int,
    schedule: Literal["resident", "sequential"],
    baseline: Measured,
    candidate: Measured,
    *,
    spent_s: float,
    even_slices: Callable[[Sequence[Slice]], bool],
    whole_cycles: bool = False,
) -> tuple[Start, int]:
    """The start and its warm-up in steps of the baseline. A start that cannot be used has `y` None and says why.

    `even_slices` tells whether evaluations and checkpoints fall evenly on the slices; if not, no slice may be trimmed away. Slices that are
    `whole_cycles`, of an evaluation and the steps up to the next, count whole: what falls inside of one may do so in each.
    """

    def unusable(reason: str) -> tuple[Start, int]:
        return Start(n, schedule, None, None, "wall", reason=reason, spent_s=spent_s), stats.WARMUP_LEAST

    pairs = list(zip(baseline.slices, candidate.slices, strict=False))
    if len(baseline.slices) != len(candidate.slices) or not all(_same_work(baseline, candidate, a, b) for a, b in pairs):
        return unusable(f"{SAME_STEPS}: {_extent(baseline)} and {_extent(candidate)}; {BY_TIME}")
    if not _both_ended(baseline, candidate):
        return unusable(f"{SAME_STEPS}: {_extent(baseline)} and {_extent(candidate)}; {BY_TIME}")
    warmup = warmup_of(baseline, candidate)
    if warmup is None and _goes_on(baseline):
        warmup = baseline.slices[0].first + baseline.slices[0].steps  # what follows tells whether they go on falling
    if warmup is None:
        return unusable("not steady: the steps were still getting faster in the second half")
    if whole_cycles:
        warmup = max((piece.first for piece in baseline.early[1:] if piece.first <= warmup), default=warmup)
    if schedule == "sequential":
        theirs_from = round(warmup * baseline.work / candidate.work)
        pairs = [(after(a, warmup), after(b, theirs_from)) for a, b in pairs]
    kept = [(a, b) for a, b in pairs if a.part == "early" and a.first >= warmup and a.steps and b.steps]
    steps = sum(a.steps for a, _ in kept)
    if steps < LEAST_STEPS:
        return unusable(f"{TOO_SHORT}: {steps} after a warm-up of {warmup}, at least {LEAST_STEPS} are needed")
    ours, theirs = [a for a, _ in kept], [b for _, b in kept]
    equal = baseline.work == candidate.work
    per_work = math.log(_done(candidate, theirs) / _done(baseline, ours))
    clock: Literal["net", "wall"] = "net" if net_holds(baseline, ours, candidate, theirs) else "wall"
    y_wall = math.log(_wall_ns(ours) / _wall_ns(theirs)) + per_work
    alike = len(kept) >= TRIM_SLICES and even_slices(ours)  # else the slices differ by what they hold, and not by noise alone
    trims = alike and clock == "wall" and schedule == "resident"
    time_ns = _net_ns if clock == "net" else _wall_ns
    ratios = [math.log((time_ns([a]) / _done(baseline, [a])) / (time_ns([b]) / _done(candidate, [b]))) for a, b in kept]
    y = stats.trimmed_mean(ratios) if trims else math.log(time_ns(ours) / time_ns(theirs)) + per_work
    start = Start(
        n,
        schedule,
        y,
        y_wall,
        clock,
        steps=steps,
        slices=len(kept),
        baseline_step_ms=_step_ms(ours, clock),
        candidate_step_ms=_step_ms(theirs, clock),
        baseline_p95_ms=_tail_ms(ours, clock, 0.95) if equal else None,
        candidate_p95_ms=_tail_ms(theirs, clock, 0.95) if equal else None,
        baseline_p99_ms=_tail_ms(ours, clock, 0.99) if equal else None,
        candidate_p99_ms=_tail_ms(theirs, clock, 0.99) if equal else None,
        baseline_cpu_s=cpu_s(baseline, ours),
        candidate_cpu_s=cpu_s(candidate, theirs),
        baseline_startup_s=baseline.startup_s,
        candidate_startup_s=candidate.startup_s,
        baseline_lead_s=_lead_s(baseline),
        candidate_lead_s=_lead_s(candidate),
        runqueue_share=_runqueue_share([*ours, *theirs]),
        spent_s=spent_s,
        baseline_peak_mb=_mb(baseline.peak_bytes),
        candidate_peak_mb=_mb(candidate.peak_bytes),
        baseline_device_peak_mb=_mb(baseline.device_peak_bytes),
        candidate_device_peak_mb=_mb(candidate.device_peak_bytes),
        pinned=baseline.pinned and candidate.pinned,
        scatter=stats.standard_error(ratios, trimmed=trims) if alike else None,
    )
    return start, warmup


def step_profile(side: Measured, clock: str) -> tuple[int, list[float]]:
    """Index of the first step after the first slice, and the milliseconds of it and all early ones after it, by the start's clock."""
    times: list[float] = []
    for piece in side.early[1:] or side.early:
        times.extend(times_ms(piece, clock))
    return (side.early[1:] or side.early)[0].first, times


def _goes_on(side: Measured) -> bool:
    """Whether later steps were timed, too."""
    return side.ended_at is not None or any(piece.part == "far" for piece in side.slices)


def _same_work(baseline: Measured, candidate: Measured, a: Slice, b: Slice) -> bool:
    """Whether two slices begin and end at the same sample, up to what whole steps allow."""
    if baseline.work == candidate.work:
        return (a.first, a.steps) == (b.first, b.steps)
    slack = max(baseline.work, candidate.work)
    ends = ((a.first * baseline.work, b.first * candidate.work), (a.steps * baseline.work, b.steps * candidate.work))
    return all(abs(ours - theirs) <= slack for ours, theirs in ends)


def _both_ended(baseline: Measured, candidate: Measured) -> bool:
    """Whether both came to their end at the same sample, or neither did."""
    ours, theirs = baseline.ended_at, candidate.ended_at
    if ours is None or theirs is None or baseline.work == candidate.work:
        return ours == theirs
    return abs(ours * baseline.work - theirs * candidate.work) <= max(baseline.work, candidate.work)


def _done(side: Measured, slices: Sequence[Slice]) -> float:
    """Work done in `slices`: steps, or samples where the sides differ in how many a step has."""
    return sum(piece.steps for piece in slices) * side.work


def _mb(count: int | None) -> float | None:
    return None if count is None else round(count / 1e6, 1)


def _lead_s(side: Measured) -> float:
    """Seconds before the first timed step, time without a core not counted where it is known."""
    first = side.slices[0]
    return side.startup_s - side.startup_wait_s + (first.wall_ns - (first.runq_ns or 0)) / 1e9


def net_holds(baseline: Measured, ours: Sequence[Slice], candidate: Measured, theirs: Sequence[Slice]) -> bool:
    """Whether wall − run-queue wait means the same on both sides: one busy thread each, no GPU, and a counter that moves.

    A program that waits for its workers, or for other threads of its own, waits for a core too when they do, and the training thread's
    queue does not show that: with others at work it is wall time. (On a busy machine the CPU of all threads alone does not tell: two
    threads that share 0.9 cores stay below 1.1 × net.)
    """
    if not (baseline.paced and candidate.paced) or baseline.device or candidate.device or baseline.processes != candidate.processes:
        return False
    for side, slices in ((baseline, ours), (candidate, theirs)):
        cpu = cpu_s(side, slices)
        if any(piece.runq_ns is None for piece in slices) or not sum(piece.runq_ns or 0 for piece in slices):
            return False
        if _net_ns(slices) <= 0 or cpu is None or cpu > NET_CPU_LIMIT * _net_ns(slices) / 1e9:
            return False
        if cpu > NET_CPU_LIMIT * sum(piece.own_cpu_ns for piece in slices) / 1e9 + CPU_TICK_S:
            return False
        if any(piece.thread_cpu_ns is None for piece in slices):
            continue
        if cpu > NET_CPU_LIMIT * sum(piece.thread_cpu_ns or 0 for piece in slices) / 1e9 + CPU_TICK_S:
            return False
    return True


def cpu_s(side: Measured, slices: Sequence[Slice]) -> float | None:
    """CPU seconds of all threads and processes while `slices` ran; None where not measured."""
    if side.processes is not None and side.processes <= 1:
        return sum(piece.cpu_ns for piece in slices) / 1e9
    if side.tree_cpu_s is None:
        return None
    timed = sum(piece.wall_ns for piece in side.early[1:])
    return side.tree_cpu_s * sum(piece.wall_ns for piece in slices) / timed if timed else None


def after(piece: Slice, warmup: int) -> Slice:
    """The part of a slice that begins after `warmup` steps."""
    drop = min(max(0, warmup - piece.first), piece.steps)
    return section(piece, drop, piece.steps) if drop else piece


def section(piece: Slice, begin: int, end: int) -> Slice:
    """Some steps of a slice; their wall and wait are the sums over these, their CPU time is in proportion."""
    walls = piece.step_ns[begin:end]
    waits = None if piece.step_runq_ns is None else piece.step_runq_ns[begin:end]
    share = sum(walls) / piece.wall_ns if piece.wall_ns else 0.0
    return replace(
        piece,
        first=piece.first + begin,
        step_ns=walls,
        step_runq_ns=waits,
        wall_ns=sum(walls),
        runq_ns=None if waits is None else sum(waits),
        cpu_ns=round(piece.cpu_ns * share),
        own_cpu_ns=round(piece.own_cpu_ns * share),
        thread_cpu_ns=None if piece.thread_cpu_ns is None else round(piece.thread_cpu_ns * share),
    )


def _net_ns(slices: Sequence[Slice]) -> int:
    return sum(piece.wall_ns - (piece.runq_ns or 0) for piece in slices)


def _wall_ns(slices: Sequence[Slice]) -> int:
    return sum(piece.wall_ns for piece in slices)


def _step_ms(slices: Sequence[Slice], clock: str) -> float:
    total = _net_ns(slices) if clock == "net" else _wall_ns(slices)
    return total / sum(piece.steps for piece in slices) / 1e6


def _tail_ms(slices: Sequence[Slice], clock: str, q: float) -> float | None:
    return stats.quantile([ms for piece in slices for ms in times_ms(piece, clock)], q)


def times_ms(piece: Slice, clock: str) -> list[float]:
    waits = (piece.step_runq_ns if clock == "net" else None) or (0,) * piece.steps
    return [(wall - wait) / 1e6 for wall, wait in zip(piece.step_ns, waits, strict=True)]


def _runqueue_share(slices: Sequence[Slice]) -> float | None:
    if any(piece.runq_ns is None for piece in slices):
        return None
    return sum(piece.runq_ns or 0 for piece in slices) / sum(piece.wall_ns for piece in slices)


def _extent(side: Measured) -> str:
    last = side.slices[-1]
    return f"{last.first + last.steps} steps" + (" to its end" if last.ended else "")
