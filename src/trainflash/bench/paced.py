"""The two programs of one start: started, paced from step boundary to step boundary, frozen, and ended on every way out."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from trainflash import launch, stats
from trainflash.bench.estimate import Measured, Part, Slice
from trainflash.bench.far import NEAR_MOST_S, Limits
from trainflash.errors import Inconclusive
from trainflash.schema import Command, RunRecord, Sandbox, Side

STARTS_TO_AFFORD = 8  # the third look; most verdicts fall there or before
QUIT_S = 15.0
ENDING = 0.05  # own: of the budget, for what a start has to do after its last step
LEAST_MEMORY = 0.05  # share of memory that must be free while both programs are resident
HANG_S = 180.0  # an evaluation or a checkpoint that no slice has shown yet may take so long
HANG_TIMES = 20.0  # … or so many times what the same work took before


class StartFailed(Inconclusive):
    """One program of a start did not deliver. `kind`: crashed, silent, untrained, others, memory, short, unlike."""

    def __init__(self, side: Side, kind: str, message: str, record: RunRecord | None = None) -> None:
        super().__init__(message)
        self.side: Side = side
        self.kind = kind
        self.record = record


@dataclass(frozen=True)
class Plan:
    """How the next start is measured; grows from what the starts before it showed. Steps are the baseline's."""

    schedule: Literal["resident", "sequential"] = "resident"
    warmup: int = stats.WARMUP_LEAST
    least_warmup: int = stats.WARMUP_LEAST  # the first epoch, where it is passed unmeasured
    available: int | None = None  # steps that the program has, where it came to its end
    startup_s: float | None = None
    sequential_steps: int | None = None
    first: Side | None = None  # which side the next sequential start begins with; None: in turns
    several: bool = False  # several processes train: they run freely and are frozen by their step counters
    pin: bool = True  # False: processes came and went while they were pinned
    far: bool = False  # after the early steps look along the run, as far as a start may take
    run_steps: int | None = None  # how many steps the owner's run has, as far as anybody knows
    seen_to: int | None = None  # how far earlier starts came; further ones are to see the same
    cycle: int = 0  # steps of which each slice holds a whole evaluation, where a start can take so long; 0: none

    @property
    def whole(self) -> int | None:
        """How many steps the run has."""
        return self.available or self.run_steps

    @property
    def aim(self) -> int | None:
        """How far a look goes: to the end of the run, or as far as earlier ones came."""
        return min((steps for steps in (self.whole, self.seen_to) if steps is not None), default=None)


@dataclass
class Bench:
    """What stays the same over all starts of one comparison. `deadline` is on the monotonic clock."""

    sandbox: Sandbox
    commands: dict[Side, Command]
    directory: Path
    deadline: float
    budget_s: float
    options: dict[str, Any] = field(default_factory=dict)  # passed on to `launch.start`
    work: dict[Side, float] = field(default_factory=lambda: {"baseline": 1.0, "candidate": 1.0})  # samples of one step
    hang_s: float = HANG_S

    def share_s(self) -> float:
        """Seconds that one start may take so that a verdict stays in reach: the starts of the third look fill the budget."""
        return self.budget_s / STARTS_TO_AFFORD

    def reach_s(self) -> float:
        """Seconds that one start may take where it then sees the end of the run: the fewest starts that decide stay in reach."""
        return self.budget_s / (stats.LEAST_STARTS + 1)

    def limits(self, began: float, now: float) -> Limits:
        """By when a look along the run is over, in a start that began then and has its early steps behind it now."""
        share_s = min(self.share_s(), NEAR_MOST_S)
        near, ends = max(began + share_s, now + share_s / 3), self.deadline - ENDING * self.budget_s
        return Limits(min(near, ends), min(max(began + self.reach_s(), near), ends))

    def left(self) -> float:
        """Seconds until the budget is over; at least a little, so that a wait can notice."""
        return max(0.05, self.deadline - time.monotonic())

    def steps(self, side: Side, steps: int) -> int:
        """As many steps of `side` as hold the samples of `steps` steps of the baseline."""
        return max(1, round(steps * self.work["baseline"] / self.work[side]))

    def patience(self, expected_s: float | None) -> float:
        """How long a program may keep silent that should take `expected_s` seconds (None: nobody knows)."""
        return self.left() if expected_s is None else min(self.left(), max(self.hang_s, HANG_TIMES * expected_s))

    def run_dir(self, side: Side, n: int) -> Path:
        return self.directory / f"start-{n:02d}-{side}"


class Started:
    """One started program with what is measured of its whole tree."""

    def __init__(self, bench: Bench, side: Side, n: int, *, pace: bool) -> None:
        run_dir = bench.run_dir(side, n)
        shutil.rmtree(run_dir, ignore_errors=True)
        self.bench, self.side = bench, side
        self.processes: int | None = None
        self.peak_bytes: int | None = None
        self._cpu_from = self._cpu_to = 0.0
        command = bench.commands[side]
        self.elsewhere = bool(launch.daemons.of(bench.sandbox, side, command))  # the tree is not the program's
        self.process = launch.start(bench.sandbox, side, command, run_dir, capture="timing", pace=pace, **bench.options)

    @property
    def tree_cpu_s(self) -> float:
        return self._cpu_to - self._cpu_from

    def begin_cpu(self) -> None:
        self._cpu_from = self._cpu_to = self.process.cpu_s()

    def end_cpu(self) -> None:
        self._cpu_to = max(self._cpu_to, self.process.cpu_s())
        self.processes = max(self.processes or 0, self.process.processes())

    def weigh(self) -> None:
        """Look at the memory of the tree, best while it is frozen."""
        if self.elsewhere:
            return
        self.peak_bytes = max(self.peak_bytes or 0, self.process.peak_bytes() or 0) or None

    def quit(self) -> None:
        """Ask the program to end where it stands."""
        self.process.thaw()

    def end(self) -> RunRecord:
        """The record of the run, after waiting a little for an orderly end."""
        if self.process.wait(QUIT_S) is None:
            self.process.kill("stopped")
        return self.process.finish()

    def silent(self, limit_s: float) -> StartFailed:
        """End a program that does not come back, and say how long it was waited for."""
        self.process.kill("timed_out")
        self.process.finish()
        if self.bench.left() <= 0.1:
            return StartFailed(self.side, "silent", f"the {self.side} was still busy when the budget was over")
        return StartFailed(self.side, "silent", f"the {self.side} hangs: it came to no step boundary within {limit_s:.0f} s")

    def gone(self) -> StartFailed:
        """Why a program that is over delivered nothing."""
        record = self.process.finish()
        if record.returncode:
            return StartFailed(self.side, "crashed", f"the {self.side} {last_words(record)}", record)
        return StartFailed(self.side, "untrained", f"the {self.side} ended without training a step", record)


class Paced(Started):
    """A program of one training process, which waits at step boundaries for our word."""

    def __init__(self, bench: Bench, side: Side, n: int) -> None:
        super().__init__(bench, side, n, pace=True)
        self.slices: list[Slice] = []
        self.ready: dict[str, Any] = {}
        self.device_peak_bytes: int | None = None
        assert self.process.reins is not None
        self.reins = self.process.reins

    def get_ready(self, expected_s: float | None) -> None:
        """Wait for the first complete step. Raises `StartFailed` when it never comes or several processes train."""
        report = self._hear(self.bench.patience(expected_s))
        if report.get("ended"):
            raise StartFailed(self.side, "short", f"the {self.side} has only {report['step']} steps")
        self.ready = report
        self.refuse_others()

    def refuse_others(self) -> None:
        """Raises `StartFailed` when more than one process trains: ranks must not be paced one by one."""
        if self.reins.others() or ranks(self.process.run_dir) > 1:
            raise StartFailed(self.side, "others", "several processes train")

    def train(self, steps: int, expected_s: float | None = None, part: Part = "early") -> Slice:
        """Train `steps` more steps, or to the end of the program if that comes first. Raises `StartFailed` when it fails there."""
        self.begin(steps)
        return self.trained(expected_s, part)

    def begin(self, steps: int) -> None:
        """Let it train `steps` more steps without waiting for them."""
        self.reins.tell(f"run {steps}")

    def trained(self, expected_s: float | None = None, part: Part = "early") -> Slice:
        """Wait for what `begin` asked for."""
        report = self._hear(self.bench.patience(expected_s))
        piece = Slice.of(report, part)
        self.slices.append(piece)
        self.device_peak_bytes = report.get("device_peak_bytes") or self.device_peak_bytes
        if piece.ended and self.process.wait(min(QUIT_S, self.bench.left())):
            record = self.process.finish()
            raise StartFailed(self.side, "crashed", f"the {self.side} {last_words(record)}", record)
        return piece

    @property
    def at(self) -> int:
        """Steps that are done."""
        return self.slices[-1].first + self.slices[-1].steps

    @property
    def scale(self) -> float:
        """Steps of the baseline that hold the samples of one step."""
        return self.bench.work[self.side] / self.bench.work["baseline"]

    def startup_s(self) -> float:
        return (self.ready["t_ns"] - self.process.started_ns) / 1e9

    def measured(self) -> Measured:
        return Measured(
            slices=tuple(self.slices),
            startup_s=self.startup_s(),
            startup_wait_s=(self.ready.get("runq_ns") or 0) / 1e9,
            tree_cpu_s=None if self.elsewhere else self.tree_cpu_s,
            processes=None if self.elsewhere else self.processes,
            device=bool(self.ready.get("device")),
            work=self.bench.work[self.side],
            peak_bytes=self.peak_bytes,
            device_peak_bytes=self.device_peak_bytes,
        )

    def quit(self) -> None:
        super().quit()
        with contextlib.suppress(OSError):
            self.reins.tell("quit")

    def _hear(self, limit_s: float) -> dict[str, Any]:
        report = self.reins.hear(limit_s, self.process.alive)
        if report is not None:
            return report
        raise self.silent(limit_s) if self.process.alive() else self.gone()


@contextlib.contextmanager
def ended(running: dict[Side, Any]) -> Iterator[None]:
    """Programs that are put into `running` are ended on every way out: asked to, when all went well."""
    try:
        yield
        for program in running.values():
            program.quit()
        for program in running.values():
            program.end()
    finally:
        for program in running.values():
            program.process.finish()


def headers(run_dir: Path) -> list[dict[str, Any]]:
    """What the probe says of each process that trained."""
    found = []
    for path in sorted(run_dir.glob("process-*.json")):
        with contextlib.suppress(OSError, ValueError):
            header = json.loads(path.read_text(encoding="utf-8"))
            if header.get("role") == "main":
                found.append(header)
    return found


def ranks(run_dir: Path) -> int:
    """How many processes train, as far as the probe's headers tell by now."""
    known = headers(run_dir)
    return max([len(known), *(int(header.get("world_size") or 1) for header in known)])


def refuse_little_memory() -> None:
    """Raises `StartFailed` when two copies leave too little of the machine's memory."""
    with contextlib.suppress(OSError, KeyError, ValueError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        figures = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
        if figures["MemAvailable"] < LEAST_MEMORY * figures["MemTotal"]:
            raise StartFailed("candidate", "memory", "there is no memory for two copies of the program")


def last_words(record: RunRecord) -> str:
    """How a program ended, with the last line of its output."""
    how = f"was ended by signal {-record.returncode}" if (record.returncode or 0) < 0 else f"ended with exit code {record.returncode}"
    last = next((line.strip() for line in reversed(record.output_tail.splitlines()) if line.strip()), "")
    return f"{how}: {last}"[:300] if last else how
