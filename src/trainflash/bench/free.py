"""Programs whose training has several processes: both resident, running freely, frozen in turns by their step counters.

Ranks cannot be paced one by one: a rank that waits at a boundary holds up the others inside a collective. So each tree runs freely
until its slowest rank has made the steps of a slice, and is frozen as it stands; the time in which it was frozen is taken out of
the step that it fell into. Steps are compared by index. A device is not shared like this: kernels that wait for a frozen rank
would go on occupying it, so such programs run one after the other.
"""

from __future__ import annotations

import itertools
import random
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace

from trainflash import launch, trace
from trainflash.bench.estimate import Measured, Slice
from trainflash.bench.paced import Bench, Plan, Started, StartFailed, ended, last_words, refuse_little_memory
from trainflash.schema import Side

SLICES = 12
LEAST_STEPS_A_SLICE = 10
SLICE_S = 0.5  # longer than a paced slice, because up to one step is cut in two; short beside the time-outs of a rendezvous
WARMUP_S = 1.0
LOOK_S = 0.004


class Free(Started):
    """A program that runs until its step counter has come far enough."""

    def __init__(self, bench: Bench, side: Side, n: int) -> None:
        super().__init__(bench, side, n, pace=False)
        self.counter = launch.StepCounter(self.process.run_dir)
        self.moving: list[tuple[int, int]] = []  # when the tree was not frozen, monotonic ns
        self._since = self.process.started_ns
        self.over = False

    def go(self) -> None:
        self._since = time.monotonic_ns()
        self.process.thaw()

    def halt(self) -> None:
        if not self.over:
            self.process.freeze()
        self.moving.append((self._since, time.monotonic_ns()))

    def reach(self, steps: int, limit_s: float, at_least_s: float = 0.0) -> None:
        """Run until all ranks have made `steps` steps (and `at_least_s` has passed), or to the end. Raises `StartFailed`."""
        began = time.monotonic()
        while (passed := time.monotonic() - began) < at_least_s or self.counter.read() < steps:
            if not self.process.alive():
                self.over = True
                if self.process.returncode or not self.counter.read():
                    raise self.gone()
                return
            if passed > limit_s:
                raise self.silent(limit_s)
            time.sleep(LOOK_S)

    def quit(self) -> None:
        """Ranks that stop one after the other would abort the last: end them at once."""
        self.counter.close()
        self.process.kill("stopped")

    def measured(self) -> Measured:
        """The steps of the first rank, with frozen time taken out. To be asked when the program is over."""
        record = self.process.finish()
        if record.status == "failed":
            raise StartFailed(self.side, "crashed", f"the {self.side} {last_words(record)}", record)
        rank = trace.load(self.process.run_dir).ranks[0]
        ends = [int(ns) for ns in rank.step_start_ns]
        walls = tuple(max(1, self._moved(ends[i + 1]) - self._moved(ends[i])) for i in range(len(ends) - 1))
        startup_s = (ends[0] - self.process.started_ns) / 1e9 if ends else 0.0
        piece = Slice(0, walls, None, sum(walls), None, 0, 0, self.over and record.status == "finished")
        return Measured(
            (piece,), startup_s, None, self.processes, device=rank.device != "cpu", paced=False, work=self.bench.work[self.side],
            peak_bytes=self.peak_bytes,
        )  # fmt: skip

    def cpu_of_a_step_s(self) -> float | None:
        return self.tree_cpu_s / self._steps_timed if self._steps_timed else None

    def count_from_here(self) -> None:
        self.begin_cpu()
        self._from_step = self.counter.read()

    def count_to_here(self) -> None:
        self.end_cpu()
        self._steps_timed = self.counter.read() - self._from_step

    _from_step = _steps_timed = 0

    def _moved(self, ns: int) -> int:
        """How long the tree had been moving at a moment."""
        at = bisect_right(self.moving, (ns, ns))
        done = sum(end - begin for begin, end in self.moving[:at])
        if at and ns < self.moving[at - 1][1]:
            done -= self.moving[at - 1][1] - ns
        return done


def resident(bench: Bench, n: int, plan: Plan, on_slice: Callable[[int, int], None]) -> tuple[dict[Side, Measured], Plan]:
    """Both programs at once, in turns. Returns what was measured and the plan, wiser. Raises `StartFailed`."""
    rng, start = random.Random(n), time.monotonic()
    running: dict[Side, Free] = {}
    with ended(running):
        for side in ("baseline", "candidate"):
            running[side] = Free(bench, side, n)
        programs = list(running.values())
        for program in programs:
            program.reach(1, bench.patience(None if plan.startup_s is None else 2 * plan.startup_s))
            program.halt()
        refuse_little_memory()
        _turn(bench, programs, rng, plan.warmup, WARMUP_S)
        least = min(program.counter.read() for program in programs)
        step_s = _step_s(programs, least)
        steps = max(LEAST_STEPS_A_SLICE, round(SLICE_S / step_s))
        for program in programs:
            program.count_from_here()
            program.weigh()
        began = time.monotonic()
        for done in range(SLICES):
            on_slice(done, SLICES)
            _turn(bench, programs, rng, least + (done + 1) * steps, 0.0, 4 * steps * step_s)
            if any(program.over for program in programs) or (done >= 3 and time.monotonic() - began > bench.share_s()):
                break
        on_slice(SLICES, SLICES)
        for program in programs:
            program.count_to_here()
        early, until = done + 1, bench.limits(start, time.monotonic()).near
        while plan.far and not any(program.over for program in programs) and time.monotonic() < until:
            done += 1
            _turn(bench, programs, rng, least + (done + 1) * steps, 0.0, 4 * steps * step_s)
        for program in programs:
            program.weigh()
    whole = {side: program.measured() for side, program in running.items()}
    if any(side.device for side in whole.values()):
        raise StartFailed("baseline", "device", "several processes train on a device")
    measured = cut(whole, least, steps, early)
    for side, program in running.items():
        cpu, timed = program.cpu_of_a_step_s(), sum(piece.steps for piece in measured[side].early[1:])
        measured[side] = replace(measured[side], tree_cpu_s=None if cpu is None else cpu * timed)
    ends = [side.ended_at for side in whole.values() if side.ended_at is not None]
    startup_s = max(side.startup_s for side in whole.values())
    return measured, replace(plan, available=min(ends) if ends else plan.available, startup_s=startup_s)


def cut(whole: dict[Side, Measured], warmup: int, steps: int, early: int = SLICES) -> dict[Side, Measured]:
    """Both sides as slices of the same step indices (the same samples): the warm-up, then `steps` each, as far as both have come.

    The first `early` of them are the early ones.
    """
    base = whole["baseline"].work
    common = min(int(side.slices[0].steps * side.work / base) for side in whole.values())
    edges = [0, *range(min(warmup, common), common + 1, steps)]
    found: dict[Side, Measured] = {}
    for side, measured in whole.items():
        walls, is_over = measured.slices[0].step_ns, measured.slices[0].ended
        own = [round(edge * base / measured.work) for edge in edges]
        pieces = []
        for first, last in itertools.pairwise(own):
            part = walls[first:last]
            at = "early" if len(pieces) <= early else "far"
            pieces.append(Slice(first, part, None, sum(part), None, 0, 0, is_over and last == len(walls), part=at))
        found[side] = replace(measured, slices=tuple(pieces))
    return found


def _turn(bench: Bench, programs: list[Free], rng: random.Random, steps: int, at_least_s: float, expected_s: float | None = None) -> None:
    """Each side in turn until it has made `steps` steps since its start."""
    for program in rng.sample(programs, len(programs)):
        program.go()
        try:
            program.reach(bench.steps(program.side, steps), bench.patience(expected_s), at_least_s)
        finally:
            program.halt()


def _step_s(programs: list[Free], steps: int) -> float:
    moved = sum(end - begin for program in programs for begin, end in program.moving[1:]) / 1e9
    return max(1e-4, moved / max(1, sum(program.counter.read() for program in programs)))
