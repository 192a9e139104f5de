"""One start: a fresh baseline and a fresh candidate process, measured in turns (resident) or one after the other (sequential)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from trainflash import launch, trace
from trainflash.bench import far
from trainflash.bench.estimate import LEAST_STEPS, Measured, Part, Slice
from trainflash.bench.paced import Bench, Paced, Plan, StartFailed, ended, last_words, refuse_little_memory
from trainflash.errors import ProgramFailed
from trainflash.schema import Side

SLICES = 12  # more slices of one start pay less than another start
LONG_SLICES = 8  # enough where a slice takes long
EARLY_SLICES = 6  # enough where more are timed along the run
EARLY_SHARE = 0.4  # own: of such a start's time for what comes before, its start-up among it
LEAST_SLICES = 4
EVALUATED = 2.0  # own: times the steps from one evaluation to the next, with that
SLICE_S = (0.1, 1.0)  # shorter slices measure the resume (the first step is 8 to 30 % slower), longer ones the weather
LONG_SLICE_S = 0.5  # slow steps: fewer of them in a slice, or a start costs minutes
DEVICE_SLICE_S = 1.0  # queued kernels and clocks take their time
LEAST_SLICE_STEPS = 20
SHORT_SLICE_STEPS = 10  # what programs of few steps are cut into
SHORT_PROGRAM = 40  # steady steps below which slices make no sense
PREFETCH_STEPS = 20  # 10 × the two batches that a DataLoader worker holds ready by default
HELD_STEPS = 8  # of slow steps: fewer would mostly measure how full those two were when the slice before was frozen
SEQUENTIAL_S = 4.0  # about what a start costs: measuring less wastes the start, measuring more the time
SEQUENTIAL_STEPS = (60, 2000)
_POLL_S = 0.05

OnSlice = Callable[[int, int], None]


def resident(bench: Bench, n: int, plan: Plan, on_slice: OnSlice) -> tuple[dict[Side, Measured], Plan]:
    """Both programs at once, in turns; the one that waits is frozen with its whole tree.

    Returns what was measured and the plan, wiser. Raises `StartFailed`.
    """
    began = time.monotonic()
    rng = random.Random(n)  # which side goes first in each pair of slices; reproducible
    running: dict[Side, Paced] = {}
    with ended(running):
        for side in ("baseline", "candidate"):
            running[side] = Paced(bench, side, n)
        baseline, candidate = running["baseline"], running["candidate"]
        programs = (baseline, candidate)
        expected_s = plan.startup_s
        for paced in programs:
            paced.get_ready(expected_s)
            expected_s = max(expected_s or 0.0, paced.startup_s())
        refuse_little_memory()
        for paced in programs:
            paced.process.freeze()
        pins = launch.Pins((paced.process.pid for paced in programs), rng)
        turns = _Turns(bench, programs, pins, rng)
        over = turns.early(plan.warmup - 1)
        for paced in programs:
            paced.refuse_others()
            paced.begin_cpu()
            paced.weigh()
        cycles = _cycles(plan, bench, baseline, candidate)
        plan = plan if cycles else replace(plan, cycle=0)
        steps, count = cycles or _cut(plan, baseline, candidate)
        expected_s = 2 * steps * _step_s(baseline, candidate)
        used = {paced.process.pid: launch.usage(paced.process.pid) for paced in programs}
        done, enough = 0, began + bench.share_s() * (EARLY_SHARE if plan.far else 1.0)
        least = min(LEAST_SLICES, count)
        while done < count and not over and (done < least or done * steps < LEAST_STEPS or time.monotonic() < enough):
            on_slice(done, count)
            over = turns.early(steps, expected_s)
            done += 1
            if done == 1 and plan.pin and not over:
                pins.hold({p.process.pid: _at_work(p, used[p.process.pid]) for p in programs})
        on_slice(count, count)
        if plan.far and not over:
            left = None if plan.aim is None else max(0, plan.aim - baseline.at)
            limits = bench.limits(began, time.monotonic())
            far.look(turns, steps, left, limits, time.monotonic, to_end=plan.aim == plan.whole)
        pinned = pins.held
        pins.release()
        for paced in programs:
            if paced.process.alive():
                paced.refuse_others()
            paced.weigh()
        measured: dict[Side, Measured] = {paced.side: replace(paced.measured(), pinned=pinned) for paced in programs}
    if not pins.settled:
        raise StartFailed("baseline", "unsettled", "processes came and went while they were pinned to cores; going on without pins")
    return measured, _wiser(plan, measured)


class _Turns:
    """Two resident programs, of which the one that is not timed is frozen with its whole tree."""

    def __init__(self, bench: Bench, programs: tuple[Paced, Paced], pins: launch.Pins, rng: random.Random) -> None:
        self._bench, self._programs, self._pins, self._rng = bench, programs, pins, rng

    def early(self, steps: int, expected_s: float | None = None) -> bool:
        """One slice of each side; True when a program came to its end."""
        return self._turn(steps, expected_s, "early")

    def timed(self, steps: int) -> bool:
        return self._turn(steps, 2 * steps * sum(self.step_s()), "far")

    def passed(self, steps: int) -> bool:
        expected_s = 2 * steps * sum(self.step_s())
        for paced in self._programs:
            paced.process.thaw()
            paced.begin(self._bench.steps(paced.side, steps))
        for paced in self._programs:
            paced.trained(expected_s, "passed")
        for paced in self._programs:
            paced.process.freeze()
        return self._over()

    def step_s(self) -> tuple[float, float]:
        baseline, candidate = (_wall_s(paced) for paced in self._programs)
        return baseline, candidate

    def _turn(self, steps: int, expected_s: float | None, part: Part) -> bool:
        self._pins.draw()
        for paced in self._rng.sample(self._programs, 2):
            paced.process.thaw()
            paced.train(self._bench.steps(paced.side, steps), expected_s, part)
            if part == "early":
                paced.end_cpu()
            paced.process.freeze()
        return self._over()

    def _over(self) -> bool:
        return any(paced.slices[-1].ended for paced in self._programs)


def _wall_s(paced: Paced) -> float:
    """Seconds in the newest timed slice for what is one step of the baseline."""
    newest = next((piece for piece in reversed(paced.slices) if piece.steps and piece.part != "passed"), None)
    return newest.wall_ns / newest.steps / 1e9 / paced.scale if newest else 1e-3


def sequential(bench: Bench, n: int, plan: Plan, on_slice: OnSlice) -> tuple[dict[Side, Measured], Plan]:
    """One program after the other, the order turned round from start to start (ABBA). Raises `StartFailed`."""
    first: Side = plan.first or ("baseline" if n % 2 else "candidate")
    order: tuple[Side, ...] = (first, "candidate" if first == "baseline" else "baseline")
    measured: dict[Side, Measured] = {}
    further = 0  # steps, the same for both
    for done, side in enumerate(order):
        on_slice(done, len(order))
        running: dict[Side, Paced] = {}
        with ended(running):
            paced = running[side] = Paced(bench, side, n)
            try:
                paced.get_ready(plan.startup_s)
            except StartFailed as failed:
                if failed.kind != "others":
                    raise
                measured[side], plan = _unpaced(paced, plan)
                continue
            over = paced.train(bench.steps(side, plan.warmup - 1)).ended
            paced.begin_cpu()
            plan = replace(plan, sequential_steps=plan.sequential_steps or _sequential_steps(paced.slices[0]))
            if not over:
                over = paced.train(bench.steps(side, plan.sequential_steps or 0)).ended
            paced.end_cpu()
            if plan.far and not over:
                further = further or _further(plan, paced, bench)
                paced.train(bench.steps(side, further), part="far")
            paced.weigh()
            measured[side] = paced.measured()
    return measured, _wiser(replace(plan, first=None), measured)


def _unpaced(paced: Paced, plan: Plan) -> tuple[Measured, Plan]:
    """Let all ranks train freely, end them after enough steps, and read the steps from the events of the first rank.

    The first slice is the warm-up, or the first epoch where that is passed; the second is what counts.
    """
    paced.reins.tell("free")
    began = time.monotonic()
    least, most = SEQUENTIAL_STEPS
    bench = paced.bench
    passed = bench.steps(paced.side, plan.warmup)
    counter = launch.StepCounter(paced.process.run_dir)
    moved_at, seen = began, 0
    while paced.process.alive():
        if (done := counter.read()) != seen:
            moved_at, seen = time.monotonic(), done
        wanted = plan.sequential_steps and bench.steps(paced.side, plan.sequential_steps)
        timed = done - passed
        if timed >= most or (wanted and timed >= wanted) or (not wanted and timed >= least and time.monotonic() - began > SEQUENTIAL_S):
            break
        if time.monotonic() - moved_at > bench.hang_s or bench.left() <= _POLL_S:
            counter.close()
            raise paced.silent(bench.hang_s)
        time.sleep(_POLL_S)
    counter.close()
    paced.weigh()
    if paced.process.alive():
        paced.process.kill("stopped")
    record = paced.process.finish()
    if record.status == "failed":
        raise StartFailed(paced.side, "crashed", f"the {paced.side} {last_words(record)}", record)
    rank = trace.load(paced.process.run_dir).ranks[0]
    steps = [int(ns) for ns in rank.wall_ns]
    wanted = bench.steps(paced.side, plan.sequential_steps) if plan.sequential_steps else max(1, len(steps) - passed)
    is_over = record.status == "finished" and len(steps) <= passed + wanted
    pieces = (_piece(0, steps[:passed], is_over and len(steps) <= passed), _piece(passed, steps[passed : passed + wanted], is_over))
    startup_s = (int(rank.step_start_ns[min(1, rank.steps)]) - paced.process.started_ns) / 1e9
    measured = Measured(
        pieces, startup_s, None, None, device=rank.device != "cpu", paced=False, work=bench.work[paced.side], peak_bytes=paced.peak_bytes
    )
    made = round(wanted * bench.work[paced.side] / bench.work["baseline"])
    return measured, replace(plan, sequential_steps=plan.sequential_steps or made)


def _further(plan: Plan, paced: Paced, bench: Bench) -> int:
    """How many steps more than the early ones a sequential start looks along the run; each side has half of the time."""
    step_s = _wall_s(paced)
    left = None if plan.aim is None else max(0, plan.aim - round(paced.at * paced.scale)) + LEAST_SLICE_STEPS  # past the end, to see it
    limits = bench.limits(0.0, 0.0)
    if left is not None and 2 * left * step_s <= far.ALL_TIMED * limits.reach:
        return left
    return max(1, round(far.ALL_TIMED * limits.near / 2 / step_s))


def _piece(first: int, steps: Sequence[int], is_over: bool) -> Slice:
    """Steps of nanoseconds of wall time, which is all that is known of ranks that run freely."""
    return Slice(first, tuple(steps), None, sum(steps), None, 0, 0, is_over)


def _at_work(paced: Paced, before: launch.Usage) -> list[int] | None:
    """The processes that the last slice kept busy; None: they must not be pinned."""
    return launch.busy(before, launch.usage(paced.process.pid))


def _step_s(baseline: Paced, candidate: Paced) -> float:
    """The usual step of both sides so far, seconds; net, because a busy machine must not shrink the slices below what they need."""
    return _median_s([*baseline.measured().step_times(), *candidate.measured().step_times()])


def _median_s(times_ns: Sequence[float]) -> float:
    return max(sorted(times_ns)[len(times_ns) // 2] / 1e9, 1e-6) if times_ns else 1e-3


def _cycles(plan: Plan, bench: Bench, baseline: Paced, candidate: Paced) -> tuple[int, int] | None:
    """Steps per slice and slices for a start whose slices hold an evaluation each; None where there is none, or no time for one.

    It is taken to last as long as the steps in between. What the first start decides holds for all: starts that hold no evaluation cannot
    be averaged with those that do.
    """
    steady = None if plan.available is None else plan.available - plan.warmup
    if plan.cycle < LEAST_STEPS or (steady is not None and steady < plan.cycle):
        return None  # slices of usual length hold evaluations that come so often
    each_s = 2 * EVALUATED * plan.cycle * _step_s(baseline, candidate)
    count = int((bench.reach_s() - 2 * (plan.startup_s or baseline.startup_s())) / each_s)
    count = min(count, EARLY_SLICES, *([steady // plan.cycle] if steady is not None else []))
    return (plan.cycle, max(1, count)) if count > 0 or plan.startup_s is not None else None


def _cut(plan: Plan, baseline: Paced, candidate: Paced) -> tuple[int, int]:
    """Steps per slice and slices for this start. Raises `StartFailed` when the program is too short for slices."""
    step_s = _step_s(baseline, candidate)
    wall_s = max(step_s, _median_s([ns for paced in (baseline, candidate) for piece in paced.slices for ns in piece.step_ns]))
    least_s = DEVICE_SLICE_S if baseline.ready.get("device") or candidate.ready.get("device") else SLICE_S[0]
    wanted_s = min((plan.startup_s or 0.0) / (2 * SLICES), SLICE_S[1])  # of wall time: together as long as the programs took to start
    workers = max(baseline.processes or 1, candidate.processes or 1) - 1
    steps = max(LEAST_SLICE_STEPS, PREFETCH_STEPS * workers, round(least_s / step_s), round(wanted_s / wall_s))
    if steps * step_s > max(LONG_SLICE_S, least_s):
        held = min(HELD_STEPS * workers, round(SLICE_S[1] / step_s))
        steps = max(1, held, round(max(LONG_SLICE_S, least_s) / step_s))
    most = EARLY_SLICES if plan.far else SLICES if steps * step_s <= LONG_SLICE_S / 2 else LONG_SLICES
    while steps * most < LEAST_STEPS:
        steps += 1
    if plan.available is None:
        return steps, most
    steady = plan.available - plan.warmup
    if steady < SHORT_PROGRAM:
        raise StartFailed("baseline", "short", f"only {steady} steady steps, too few for slices")
    if steps * most <= steady:
        return steps, most
    count = max(LEAST_SLICES, min(most, steady // SHORT_SLICE_STEPS))
    return steady // count, count


def _wiser(plan: Plan, measured: dict[Side, Measured]) -> Plan:
    """What this start showed about the program: how many steps it has, and how long it takes to start."""
    base = measured["baseline"].work
    ends = [int(side.ended_at * side.work / base) for side in measured.values() if side.ended_at is not None]
    plan = replace(
        plan,
        available=min(ends) if ends else plan.available,
        startup_s=max(side.startup_s for side in measured.values()),
    )
    if plan.schedule == "resident" and plan.available is not None and plan.available - plan.warmup < SHORT_PROGRAM:
        return replace(plan, schedule="sequential")
    return plan


def _sequential_steps(warmup: Slice) -> int:
    least, most = SEQUENTIAL_STEPS
    step_s = max(warmup.wall_ns / max(1, warmup.steps) / 1e9, 1e-6)
    return min(max(least, round(SEQUENTIAL_S / step_s)), most)


def interruptions(run_dir: Path) -> dict[str, frozenset[int]] | None:
    """The steps of a run that hold an evaluation or a checkpoint, by phase. Read from the run's events; None where it left none."""
    try:
        rank = trace.load(run_dir).ranks[0]
    except ProgramFailed:
        return None
    return {phase: frozenset(int(step) for step in rank.occurrences[phase].step) for phase in ("Eval", "Ckpt") if phase in rank.occurrences}


def even_slices(interrupted: Mapping[str, frozenset[int]] | None) -> Callable[[Sequence[Slice]], bool]:
    """A test of whether every slice holds an evaluation and a checkpoint, or none does. None: nobody knows."""

    def test(slices: Sequence[Slice]) -> bool:
        if interrupted is None:
            return False
        held = [[any(piece.first <= step < piece.first + piece.steps for step in at) for piece in slices] for at in interrupted.values()]
        return all(all(holds) or not any(holds) for holds in held)

    return test
