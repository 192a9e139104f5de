"""Starting the recorded runs of a trial, and following them: who has made how many updates, and when each is to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from trainflash import launch
from trainflash.fidelity import outputs, written
from trainflash.fidelity.record import Reader, Record
from trainflash.schema import Command, RunRecord, Sandbox, Side

SEED = 20_240_229  # both sides alike; only for programs that set none themselves
_LOOK_S = 0.2
_SEARCH_S = 3.0

_CHECK_PART = 0.5  # of a budget; the rest belongs to the timing
# Runs one after the other, each as long as the first pair, that most checks take: the pair, the baseline again and nudged, two more pairs
# of it for what changes in kind, and one more of either side: a restart, or the changed lines.
_PASSES = 5.0
_EPOCH_PART = 0.4  # of the check, for a pair that tells nothing before a second epoch: the same again is left where it rounds
_EARLY = 0.7  # of the time to the first update, which both sides need at once, surely goes by in a timed start too

Progress = Callable[[str, int, int], None]


class OutOfTime(Exception):
    """The check may not take as long as it needs: what for, and the budget in seconds that would do, as far as it shows."""

    def __init__(self, why: str, budget_s: float) -> None:
        super().__init__(f"{why}: give --budget {_minutes(budget_s)} or more")


@dataclass(frozen=True)
class Bounds:
    """How long a trial trains where the number of updates is not given. Seconds of wall time, both sides running at once."""

    whole_s: float = 60.0  # a program that ends within this is compared whole
    most_s: float = 240.0  # then it ends, whatever it has not seen
    longest_s: float = 0.0  # … but here, where only a second epoch would tell
    total_s: float = math.inf  # all runs of the check
    budget_s: float = math.inf  # check and timing
    starts: int = 0  # so many starts of both sides must fit into what the check leaves
    first_update_s: float = 900.0  # a baseline that has not trained by then is given up
    first_look: int = 30  # updates after which a hopeless candidate is refused; then at each doubling
    patience: float = 5.0  # the candidate may take so many times the baseline's time,
    least_patience_s: float = 60.0  # and at least this long

    @classmethod
    def within(cls, budget_s: float, starts: int) -> Bounds:
        """The bounds of a check that leaves half of `budget_s` seconds, or more, to a timing of at least `starts` starts.

        The first pair is planned so that the runs that may have to follow it fit in; more than 75 s of it rarely show more, and are
        spent where the budget is large.
        """
        total_s = _CHECK_PART * budget_s
        pair_s = total_s / _PASSES
        return cls(
            whole_s=_within(15.0, 0.8 * pair_s, 45.0),
            most_s=_within(20.0, pair_s, max(75.0, total_s / 12)),
            longest_s=_EPOCH_PART * total_s,
            total_s=total_s,
            budget_s=budget_s,
            starts=starts,
            first_update_s=total_s,
        )


class Attempt:
    """One started run. `record` is what it has written so far; after `end` it is final."""

    def __init__(self, name: str, process: launch.Process, run_dir: Path) -> None:
        self.name = name
        self.run_dir = run_dir
        self.cut = False  # stopped by us before its own end
        self.result: RunRecord | None = None
        self.outputs: Path | None = None  # what it wrote in the project, once ended; None: not asked for
        self._process = process
        self._keep: Callable[[launch.Process], Path | None] | None = None
        self._reader = Reader(run_dir)
        self.first_s: float | None = None  # when its first update was seen
        self._started = time.monotonic()
        self._over_s: float | None = None
        self._looked = 0.0

    def running(self) -> bool:
        if self._over_s is None and self._process.poll() is not None:
            self._over_s = time.monotonic() - self._started
        return self._over_s is None

    @property
    def seconds(self) -> float:
        """Wall seconds that it ran, or has run so far."""
        return self._over_s if self._over_s is not None else time.monotonic() - self._started

    def due(self) -> bool:
        """True once every `_SEARCH_S` seconds: a search through the whole record costs time that the training needs."""
        if self.seconds - self._looked < _SEARCH_S:
            return False
        self._looked = self.seconds
        return True

    @property
    def failed(self) -> bool:
        """Ended by itself, and not well."""
        return not self.running() and not self.cut and self._process.returncode != 0

    @property
    def record(self) -> Record:
        found = self._reader.look(whole=not self.running() and not self.cut and self._process.returncode == 0)
        if self.first_s is None and found.updates:
            self.first_s = self.seconds
        return found

    def stop(self) -> None:
        """Cut it here; nothing that it completed is lost."""
        if self.running():
            self.cut = True
            self._process.kill("stopped")
            self.running()

    def end(self) -> RunRecord:
        """Stop it if it still runs, close its view and write its `run.json`."""
        self.stop()
        if self.result is None:
            if self._keep is not None:
                self.outputs = self._keep(self._process)
            self.result = self._process.finish()
        return self.result

    def at_end(self, keep: Callable[[launch.Process], Path | None]) -> None:
        """When it has ended keep of what it wrote what `keep` keeps; that gives `outputs`."""
        self._keep = keep

    @property
    def log(self) -> Path:
        """Its own output."""
        return self._process.log


@dataclass(frozen=True)
class Starter:
    """Starts attempts of one trial. `redact` cleans the program's output before it is kept."""

    sandbox: Sandbox
    updates: int | None
    bounds: Bounds
    on_progress: Progress | None
    online: bool
    writable: Sequence[str]
    redact: Callable[[str], str] | None
    gather: bool = False  # keep what each run writes in the project
    clock: Callable[[], float] = time.monotonic
    began: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "began", self.clock())

    @property
    def spent_s(self) -> float:
        """Seconds that the check took so far."""
        return self.clock() - self.began

    @property
    def left_s(self) -> float:
        """Seconds that it may still take."""
        return self.bounds.total_s - self.spent_s

    def afford(self, what: str, seconds: float) -> None:
        """Raises `OutOfTime` where runs of `seconds` seconds do not fit in any more: half a run would tell nothing."""
        if self.left_s < seconds:
            known = f"{what} takes about {seconds:.0f} s, and {max(0.0, self.left_s):.0f} of the {self.bounds.total_s:.0f} s are left"
            raise OutOfTime(f"{known} that the check of the training may take", (self.spent_s + seconds) / _CHECK_PART)

    def afford_starts(self, first_s: float | None) -> None:
        """Raises `OutOfTime` where the first pair shows that the timing cannot come to its end: `first_s` is its time to an update."""
        if first_s is None:
            return
        needed, left = self.bounds.starts * _EARLY * first_s, self.bounds.budget_s - self.spent_s
        if needed > left:
            why = f"{self.bounds.starts} starts of both sides take at least {needed:.0f} s, and {left:.0f} s of the budget are left"
            raise OutOfTime(why, max(self.spent_s, needed) + needed)

    def start(
        self,
        name: str,
        side: Side,
        command: Command,
        directory: Path,
        *,
        environment: Mapping[str, str] | None = None,
        seed: int = SEED,
        max_steps: int | None = None,
        carry: Path | None = None,
        gather: bool = False,
    ) -> Attempt:
        """Start `command` under the recorder in a new folder of `directory`.

        `environment` says how this run differs (a nudge, another order); `carry` is what an earlier run wrote, to be found by this one;
        with `gather` what this one writes in the project is kept (`Attempt.outputs`).
        """
        run_dir = _free(directory, name)
        process = launch.start(
            self.sandbox,
            side,
            replace(command, env={"PYTHONHASHSEED": "0", **(environment or {}), **command.env}),
            run_dir,
            capture="fidelity",
            seed=seed,
            max_steps=max_steps,
            online=self.online,
            writable=self.writable,
            sample_hz=0,
            redact=self.redact,
            prepare=(lambda view: outputs.put(view, self.sandbox, carry)) if carry is not None else None,
        )
        attempt = Attempt(name, process, run_dir)

        def keep(ended: launch.Process) -> Path | None:
            written.keep(ended.view, self.sandbox, run_dir)
            return outputs.gather(ended.view, self.sandbox, run_dir / "outputs") if gather or self.gather else None

        attempt.at_end(keep)
        return attempt

    def reach(self, attempts: Iterable[Attempt], target: int | None, deadline_s: float | None = None) -> None:
        """Let `attempts` train until each has made `target` updates (None: to its own end) or `deadline_s` seconds are over."""
        attempts = list(attempts)
        while waiting := [each for each in attempts if each.running()]:
            self.tell(attempts, target)
            for each in waiting:
                arrived = target is not None and each.record.updates >= target
                if arrived or (deadline_s is not None and each.seconds > deadline_s):
                    each.stop()
            self.expire(attempts)
            pause()
        self.tell(attempts, target)

    def expire(self, attempts: Iterable[Attempt]) -> None:
        """Raises `OutOfTime` when the time of the check is over and one of `attempts` still runs."""
        if self.left_s > 0:
            return
        for each in attempts:
            if each.running():
                made = f"{each.name} had made {each.record.updates} updates in {each.seconds:.0f} s"
                if not each.record.updates:
                    made = f"{each.name} made no update in {each.seconds:.0f} s (an optimizer's step, or parameters changed in place)"
                raise OutOfTime(f"{made} when the {self.bounds.total_s:.0f} s of the check were over", 2 * self.bounds.budget_s)

    def tell(self, attempts: Iterable[Attempt], target: int | None) -> None:
        """Report how far the slowest is; a total of 0 means that the end is not known."""
        if self.on_progress is not None:
            attempts = list(attempts)
            names = " and ".join(each.name for each in attempts) or "nothing"
            self.on_progress(f"fidelity: {names}", min((each.record.updates for each in attempts), default=0), target or 0)


def _within(least: float, wanted: float, most: float) -> float:
    """A small budget must not thin the evidence of sameness, nor a large one be spent on it."""
    return max(least, min(wanted, most))


def _minutes(seconds: float) -> str:
    return f"{10 * math.ceil(seconds / 10)}s" if seconds <= 180 else f"{math.ceil(seconds / 60)}m"


def pause() -> None:
    """Wait until it is worth looking again."""
    time.sleep(_LOOK_S)


def _free(directory: Path, name: str) -> Path:
    """A folder that no earlier run has used."""
    candidates = (directory / (name if number == 1 else f"{name}-{number}") for number in range(1, 10_000))
    return next(path for path in candidates if not path.exists())
