"""One start: a fresh baseline and a fresh candidate process, measured in turns (resident) or one after the other (sequential)."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from trainflash import launch, stats, trace
from trainflash.bench.estimate import LEAST_STEPS, Measured, Slice
from trainflash.errors import Inconclusive, ProgramFailed
from trainflash.schema import Command, RunRecord, Sandbox, Side

SLICES = 12  # more slices of one start pay less than another start
LONG_SLICES = 8  # enough where a slice takes long
LEAST_SLICES = 4
STARTS_TO_AFFORD = 8  # the third look; most verdicts fall there or before
SLICE_S = (0.1, 1.0)  # shorter slices measure the resume (the first step is 8 to 30 % slower), longer ones the weather
LONG_SLICE_S = 0.5  # slow steps: fewer of them in a slice, or a start costs minutes
DEVICE_SLICE_S = 1.0  # queued kernels and clocks take their time
LEAST_SLICE_STEPS = 20
SHORT_SLICE_STEPS = 10  # what programs of few steps are cut into
SHORT_PROGRAM = 40  # steady steps below which slices make no sense
PREFETCH_STEPS = 20  # 10 × the two batches that a DataLoader worker holds ready by default
SEQUENTIAL_S = 4.0  # about what a start costs: measuring less wastes the start, measuring more the time
SEQUENTIAL_STEPS = (60, 2000)
QUIT_S = 15.0
LEAST_MEMORY = 0.05  # share of memory that must be free while both programs are resident
_POLL_S = 0.05

OnSlice = Callable[[int, int], None]


class StartFailed(Inconclusive):
    """One program of a start did not deliver. `kind`: crashed, silent, untrained, others, memory, short."""

    def __init__(self, side: Side, kind: str, message: str, record: RunRecord | None = None) -> None:
        super().__init__(message)
        self.side: Side = side
        self.kind = kind
        self.record = record


@dataclass(frozen=True)
class Plan:
    """How the next start is measured; grows from what the starts before it showed."""

    schedule: Literal["resident", "sequential"] = "resident"
    warmup: int = stats.WARMUP_LEAST
    least_warmup: int = stats.WARMUP_LEAST  # the first epoch, where it is passed unmeasured
    available: int | None = None  # steps that the program has, where it came to its end
    startup_s: float | None = None
    sequential_steps: int | None = None
    first: Side | None = None  # which side the next sequential start begins with; None: in turns


@dataclass
class Bench:
    """What stays the same over all starts of one comparison. `deadline` is on the monotonic clock."""

    sandbox: Sandbox
    commands: dict[Side, Command]
    directory: Path
    deadline: float
    budget_s: float
    options: dict[str, Any] = field(default_factory=dict)  # passed on to `launch.start`

    def share_s(self) -> float:
        """Seconds that one start may take so that a verdict stays in reach: the starts of the third look fill the budget."""
        return self.budget_s / STARTS_TO_AFFORD

    def left(self) -> float:
        """Seconds until the budget is over; at least a little, so that a wait can notice."""
        return max(0.05, self.deadline - time.monotonic())


class Paced:
    """One paced program of a start."""

    def __init__(self, bench: Bench, side: Side, n: int) -> None:
        run_dir = bench.directory / f"start-{n:02d}-{side}"
        shutil.rmtree(run_dir, ignore_errors=True)
        self.bench, self.side = bench, side
        self.slices: list[Slice] = []
        self.ready: dict[str, Any] = {}
        self.processes: int | None = None
        self._cpu_from = self._cpu_to = 0.0
        self.process = launch.start(bench.sandbox, side, bench.commands[side], run_dir, capture="timing", pace=True, **bench.options)
        assert self.process.reins is not None
        self.reins = self.process.reins

    def get_ready(self) -> None:
        """Wait for the first complete step. Raises `StartFailed` when it never comes or several processes train."""
        report = self._hear(self.bench.left())
        if report.get("ended"):
            raise StartFailed(self.side, "short", f"the {self.side} has only {report['step']} steps")
        self.ready = report
        self.refuse_others()

    def refuse_others(self) -> None:
        """Raises `StartFailed` when more than one process trains: ranks must not be paced one by one."""
        if self.reins.others() or _ranks(self.process.run_dir) > 1:
            raise StartFailed(self.side, "others", "several processes train")

    def train(self, steps: int) -> Slice:
        """Train `steps` more steps, or to the end of the program if that comes first. Raises `StartFailed` when it fails there."""
        self.reins.tell(f"run {steps}")
        report = self._hear(self.bench.left())
        piece = Slice.of(report)
        self.slices.append(piece)
        if piece.ended and self.process.wait(min(QUIT_S, self.bench.left())):
            record = self.process.finish()
            raise StartFailed(self.side, "crashed", f"the {self.side} {_last_words(record)}", record)
        return piece

    def begin_cpu(self) -> None:
        self._cpu_from = self._cpu_to = self.process.cpu_s()

    def end_cpu(self) -> None:
        self._cpu_to = max(self._cpu_to, self.process.cpu_s())
        self.processes = max(self.processes or 0, self.process.processes())

    def measured(self) -> Measured:
        return Measured(
            slices=tuple(self.slices),
            startup_s=(self.ready["t_ns"] - self.process.started_ns) / 1e9,
            tree_cpu_s=self._cpu_to - self._cpu_from,
            processes=self.processes,
            device=bool(self.ready.get("device")),
        )

    def quit(self) -> None:
        """Ask the program to end where it stands."""
        self.process.thaw()
        with contextlib.suppress(OSError):
            self.reins.tell("quit")

    def end(self) -> RunRecord:
        """The record of the run, after waiting a little for an orderly end."""
        if self.process.wait(QUIT_S) is None:
            self.process.kill("stopped")
        return self.process.finish()

    def _hear(self, timeout: float) -> dict[str, Any]:
        report = self.reins.hear(timeout, self.process.alive)
        if report is not None:
            return report
        if self.process.alive():
            self.process.kill("timed_out")
            self.process.finish()
            raise StartFailed(self.side, "silent", f"the {self.side} was still busy when the budget was over")
        record = self.process.finish()
        if record.returncode:
            raise StartFailed(self.side, "crashed", f"the {self.side} {_last_words(record)}", record)
        raise StartFailed(self.side, "untrained", f"the {self.side} ended without training a step", record)


@contextlib.contextmanager
def started(bench: Bench, sides: tuple[Side, ...], n: int) -> Iterator[dict[Side, Paced]]:
    """Paced programs that are ended on every way out."""
    running: dict[Side, Paced] = {}
    try:
        for side in sides:
            running[side] = Paced(bench, side, n)
        yield running
        for paced in running.values():
            paced.quit()
        for paced in running.values():
            paced.end()
    finally:
        for paced in running.values():
            paced.process.finish()


def resident(bench: Bench, n: int, plan: Plan, on_slice: OnSlice) -> tuple[dict[Side, Measured], Plan]:
    """Both programs at once, in turns; the one that waits is frozen with its whole tree.

    Returns what was measured and the plan, wiser. Raises `StartFailed`.
    """
    began = time.monotonic()
    rng = random.Random(n)  # which side goes first in each pair of slices; reproducible
    with started(bench, ("baseline", "candidate"), n) as sides:
        baseline, candidate = sides["baseline"], sides["candidate"]
        for paced in sides.values():
            paced.get_ready()
        _refuse_little_memory()
        for paced in sides.values():
            paced.process.freeze()

        def turn(steps: int) -> bool:
            """One slice of each side; True when a program came to its end."""
            order = [baseline, candidate]
            rng.shuffle(order)
            for paced in order:
                paced.process.thaw()
                paced.train(steps)
                paced.end_cpu()
                paced.process.freeze()
            return baseline.slices[-1].ended or candidate.slices[-1].ended

        over = turn(plan.warmup - 1)
        for paced in sides.values():
            paced.refuse_others()
            paced.begin_cpu()
        steps, count = _cut(plan, baseline, candidate)
        done, enough = 0, began + bench.share_s()
        while done < count and not over and (done < LEAST_SLICES or time.monotonic() < enough):
            on_slice(done, count)
            over = turn(steps)
            done += 1
        on_slice(count, count)
        for paced in sides.values():
            paced.refuse_others()
        measured: dict[Side, Measured] = {side: paced.measured() for side, paced in sides.items()}
    return measured, _wiser(plan, measured)


def sequential(bench: Bench, n: int, plan: Plan, on_slice: OnSlice) -> tuple[dict[Side, Measured], Plan]:
    """One program after the other, the order turned round from start to start (ABBA). Raises `StartFailed`."""
    first: Side = plan.first or ("baseline" if n % 2 else "candidate")
    order: tuple[Side, ...] = (first, "candidate" if first == "baseline" else "baseline")
    measured: dict[Side, Measured] = {}
    for done, side in enumerate(order):
        on_slice(done, len(order))
        with started(bench, (side,), n) as sides:
            paced = sides[side]
            try:
                paced.get_ready()
            except StartFailed as failed:
                if failed.kind != "others":
                    raise
                measured[side], plan = _unpaced(paced, plan)
                continue
            over = paced.train(plan.warmup - 1).ended
            paced.begin_cpu()
            plan = replace(plan, sequential_steps=plan.sequential_steps or _sequential_steps(paced.slices[0]))
            if not over:
                paced.train(plan.sequential_steps or 0)
            paced.end_cpu()
            measured[side] = paced.measured()
    return measured, _wiser(replace(plan, first=None), measured)


def _unpaced(paced: Paced, plan: Plan) -> tuple[Measured, Plan]:
    """Let all ranks train freely, end them after enough steps, and read the steps from the events of the first rank."""
    paced.reins.tell("free")
    began = time.monotonic()
    least, most = SEQUENTIAL_STEPS
    while paced.process.alive():
        done = launch.steps_so_far(paced.process.run_dir)
        wanted = plan.sequential_steps
        if done >= most or (wanted and done >= wanted) or (not wanted and done >= least and time.monotonic() - began > SEQUENTIAL_S):
            break
        if paced.bench.left() <= _POLL_S:
            raise StartFailed(paced.side, "silent", f"the {paced.side} was still busy when the budget was over")
        time.sleep(_POLL_S)
    if paced.process.alive():
        paced.process.kill("stopped")
    record = paced.process.finish()
    if record.status == "failed":
        raise StartFailed(paced.side, "crashed", f"the {paced.side} {_last_words(record)}", record)
    rank = trace.load(paced.process.run_dir).ranks[0]
    steps = [int(ns) for ns in rank.wall_ns]
    wanted = plan.sequential_steps or len(steps)
    ended = record.status == "finished" and len(steps) <= wanted
    steps = steps[:wanted]
    startup_s = (int(rank.step_start_ns[min(1, rank.steps)]) - paced.process.started_ns) / 1e9
    piece = Slice(0, tuple(steps), None, sum(steps), None, 0, 0, ended)
    measured = Measured((piece,), startup_s, None, None, device=rank.device != "cpu", paced=False)
    return measured, replace(plan, sequential_steps=wanted)


def _cut(plan: Plan, baseline: Paced, candidate: Paced) -> tuple[int, int]:
    """Steps per slice and slices for this start. Raises `StartFailed` when the program is too short for slices."""
    warm = [*baseline.measured().step_times(), *candidate.measured().step_times()]  # net: a busy machine must not shrink the slices
    step_s = max(sorted(warm)[len(warm) // 2] / 1e9, 1e-6) if warm else 1e-3
    least_s = DEVICE_SLICE_S if baseline.ready.get("device") or candidate.ready.get("device") else SLICE_S[0]
    wanted_s = min(max((plan.startup_s or 0.0) / (2 * SLICES), least_s), SLICE_S[1])  # as long as the programs took to start
    workers = max(baseline.processes or 1, candidate.processes or 1) - 1
    steps = max(LEAST_SLICE_STEPS, PREFETCH_STEPS * workers, round(wanted_s / step_s))
    if steps * step_s > max(LONG_SLICE_S, least_s):
        steps = max(1, round(max(LONG_SLICE_S, least_s) / step_s))
    most = SLICES if steps * step_s <= LONG_SLICE_S / 2 else LONG_SLICES
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
    ends = [side.ended_at for side in measured.values() if side.ended_at is not None]
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


def _ranks(run_dir: Path) -> int:
    """How many processes train, as far as the probe's headers tell by now."""
    ranks = 0
    for path in run_dir.glob("process-*.json"):
        with contextlib.suppress(OSError, ValueError):
            header = json.loads(path.read_text(encoding="utf-8"))
            if header.get("role") == "main":
                ranks = max(ranks + 1, int(header.get("world_size") or 1))
    return ranks


def _refuse_little_memory() -> None:
    with contextlib.suppress(OSError, KeyError, ValueError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        figures = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
        if figures["MemAvailable"] < LEAST_MEMORY * figures["MemTotal"]:
            raise StartFailed("candidate", "memory", "there is no memory for two copies of the program")


def _last_words(record: RunRecord) -> str:
    how = f"was ended by signal {-record.returncode}" if (record.returncode or 0) < 0 else f"ended with exit code {record.returncode}"
    last = next((line.strip() for line in reversed(record.output_tail.splitlines()) if line.strip()), "")
    return f"{how}: {last}"[:300] if last else how


def even_slices(run_dir: Path) -> Callable[[list[Slice]], bool]:
    """A test of whether every slice holds an evaluation and a checkpoint, or none does. Read from the run's events."""

    def test(slices: list[Slice]) -> bool:
        try:
            rank = trace.load(run_dir).ranks[0]
        except ProgramFailed:
            return False
        for phase in ("Eval", "Ckpt"):
            if phase not in rank.occurrences:
                continue
            at = [int(step) for step in rank.occurrences[phase].step]
            holds = [any(piece.first <= step < piece.first + piece.steps for step in at) for piece in slices]
            if any(holds) and not all(holds):
                return False
        return True

    return test
