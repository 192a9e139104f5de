"""Start after start, until the rule, the budget or the program says enough. Every start is kept before the next one begins."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import shutil
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainflash import launch, stats, trace
from trainflash.bench import course, fingerprint, free, measure, spans
from trainflash.bench.estimate import BY_TIME, SAME_STEPS, TOO_SHORT, Measured, estimate, step_profile
from trainflash.bench.paced import Bench, Plan, StartFailed, headers
from trainflash.bench.store import Kept, Store, no_room
from trainflash.errors import ProgramFailed
from trainflash.schema import Command, Runs, Sandbox, Side, SpeedVerdict, Start, to_plain, write_document

OnProgress = Callable[[str, int, int], None]
Judge = Callable[..., SpeedVerdict]  # of the starts so far, like `judge_starts`

GRACE = 1.1  # a start that began within the budget may take so much longer, or its time was wasted
BARELY_S = 0.1  # nothing can be waited for any more
UNUSABLE_IN_A_ROW = 3  # starts without a y before we stop asking
FALL_BACK = frozenset({"memory", "short", "crashed", "device"})  # two copies may not go together where one alone does
SIDES: tuple[Side, Side] = ("baseline", "candidate")


@dataclass(frozen=True)
class Question:
    """What a comparison is about, beside the two commands.

    `identity` is whatever else must not change between its starts, such as the content of both checkouts. The first `first_epoch` steps
    are passed unmeasured: a cache that they fill pays only later. `work` is how many samples (or tokens) one step of the baseline and of
    the candidate has, where they differ; times are then per `unit`. `far`: look along the run until it is known whether steps change;
    `run_steps`: how many it has, where that is known. `cycle`: steps from one evaluation to the next, of which each start times a whole
    one where it can.
    """

    identity: str = ""
    first_epoch: int = 0
    work: tuple[float, float] = (1.0, 1.0)
    unit: str = "step"
    min_gain: float = stats.LEAST_GAIN
    far: bool = False
    run_steps: int | None = None
    cycle: int = 0

    @property
    def terms(self) -> dict[str, Any]:
        """How starts are measured: what further ones must have in common with those that are there."""
        return {"first_epoch": self.first_epoch, "work": list(self.work), "unit": self.unit, "cycle": self.cycle}


def compare(
    sandbox: Sandbox,
    baseline: Command,
    candidate: Command,
    directory: Path,
    *,
    budget_s: float,
    question: Question | None = None,
    on_progress: OnProgress | None = None,
    resume: bool = False,
    online: bool = False,
    writable: Sequence[str] = (),
    redact: Callable[[str], str] | None = None,
    shown: Command | None = None,
    hang_s: float | None = None,
    judge: Judge | None = None,
) -> tuple[Runs, SpeedVerdict]:
    """Measure `baseline` in the sandbox's baseline checkout against `candidate` in its worktree, as both stand.

    Starts are appended to `directory/starts.jsonl` as they are measured and `runs.json` is written at the end. Starts that are there
    already count, as long as the question, the machine, its settings and versions are the same; else they are set aside, or, with
    `resume`, refused. `shown` is the baseline's command as it may be written down. `on_progress` gets what is measured, slices done, and
    of how many. The verdict is `inconclusive` as soon as `budget_s` seconds cannot buy one, and `reject` when the candidate fails by
    itself; it is never `continue`. A program that comes to no step boundary within `hang_s` seconds (or 20 times what that took
    before) hangs. `judge` asks another question of the starts than `judge_starts` does, in its words. Raises `ProgramFailed` when the
    baseline fails or never trains, `UsageError` when resuming something else, `Inconclusive` when the disk is full.
    """
    question = question or Question()
    options = {"online": online, "writable": writable} | ({"redact": redact} if redact else {})
    began = time.monotonic()
    try:
        store = Store(directory)
        store.asked = question.terms
        facts = {**fingerprint.machine(), **fingerprint.settings({**os.environ, **baseline.env})}
        compared = _digest(baseline, candidate, question, online, writable)
        daemon = launch.daemons.of(sandbox, "baseline", baseline)
        kept = store.begin(compared, facts, _first_plan(question, daemon), resume=resume)
    except OSError as bad:
        raise no_room(bad, directory) from None
    bench = Bench(
        sandbox, {"baseline": baseline, "candidate": candidate}, directory, began + GRACE * budget_s, budget_s, options,
        dict(zip(SIDES, question.work, strict=True)),
    )  # fmt: skip
    if hang_s is not None:
        bench.hang_s = hang_s
    run = _Comparison(bench, store, question, kept, began, on_progress or (lambda *_: None), resume, judge or judge_starts)
    verdict: SpeedVerdict | None = None
    try:
        verdict = replace(run.until_verdict(), unit=_unit(question))
    except OSError as bad:
        raise no_room(bad, directory) from None
    finally:
        runs = Runs(
            command=shown or baseline,
            starts=tuple(run.starts),
            warmup_steps=run.plan.warmup,
            unit=_unit(question),
            machine={**store.facts, **_weather()},
            stopped_because=verdict.reason if verdict else "interrupted or failed",
            kept_from_before=run.from_before,
        )
        with contextlib.suppress(OSError):  # a full disk: the starts themselves are kept line by line
            write_document(directory / "runs.json", runs)
    return runs, verdict


def asked_before(directory: Path) -> Question | None:
    """How the starts kept in `directory` were measured: more of the same kind must be asked for alike. None: there are none that count."""
    try:
        asked = json.loads((directory / "bench.json").read_text(encoding="utf-8"))["asked"]
        ours, theirs = asked["work"]
        if not any(json.loads(line)["y"] is not None for line in (directory / "starts.jsonl").read_bytes().split(b"\n")[:-1]):
            return None
        return Question(
            first_epoch=int(asked["first_epoch"]), work=(float(ours), float(theirs)), unit=str(asked["unit"]), cycle=int(asked["cycle"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def course_of(directory: Path, starts: Sequence[Start]) -> course.Course | None:
    """How the steps of both sides change along the run; None where no start counts."""
    return course.of_starts(starts, Store(directory).steps({start.n for start in starts if start.y is not None}))


def forget_after(directory: Path, count: int) -> None:
    """Let only the first `count` starts kept in `directory` count from now on."""
    Store(directory).keep_first(count)


def judge_starts(
    starts: Sequence[Start],
    *,
    min_gain: float = stats.LEAST_GAIN,
    affordable: int | None = None,
    profiles: Sequence[dict[str, Any]] = (),
) -> SpeedVerdict:
    """The rule on measured starts. Where some starts have no net time, all are judged by wall time."""
    counted = [start for start in starts if start.y is not None]
    mixed = len({start.clock for start in counted}) > 1
    ys = [start.y_wall if mixed else start.y for start in counted]
    walls, scatters = [start.y_wall for start in counted], [start.scatter for start in counted]
    verdict = stats.decide(ys, walls, scatters, min_gain=min_gain, affordable=affordable)
    left_out = len(starts) - len(counted)
    if left_out:
        counted_out = "1 more start" if left_out == 1 else f"{left_out} more starts"
        verdict = replace(verdict, reason=f"{verdict.reason}; {counted_out} did not count: {_last_reason(starts)}")
    verdict = stats.with_tails(
        verdict,
        [_ratio(start.baseline_p95_ms, start.candidate_p95_ms) for start in counted],
        [_ratio(start.baseline_p99_ms, start.candidate_p99_ms) for start in counted],
        [start.steps for start in counted] or None,
    )
    if verdict.speedup is None or not profiles:
        return verdict
    ours, theirs = ([(int(first), times) for first, times in (line[side] for line in profiles)] for side in SIDES)
    own = {f"own_p{round(100 * q)}": stats.own_tail(ours, theirs, q) for q in (0.95, 0.99)}
    return replace(verdict, speedup=replace(verdict.speedup, **own))


def cost(budget_s: float, *, start_s: float | None = None) -> str:
    """What a comparison will cost, in one sentence to be said beforehand; `start_s` is what one start of the pair took before."""
    least, most = stats.LOOKS[0], stats.LOOKS[-1]
    sentence = f"starts the program {2 * least} to {2 * most} times, each version {least} to {most} times"
    if start_s:
        sentence += f", about {_minutes(least * start_s)} to {_minutes(min(most * start_s, budget_s))}"
    return f"{sentence}; ends after {_minutes(budget_s)} at the latest (--budget)"


@dataclass
class _Comparison:
    bench: Bench
    store: Store
    question: Question
    kept: Kept
    began: float
    on_progress: OnProgress
    resume: bool
    judge: Judge
    starts: list[Start] = field(init=False)
    plan: Plan = field(init=False)
    from_before: int = field(init=False)
    aside: str = field(init=False)
    length: int | None = None  # steps of the baseline to its own end, as a start of now has shown

    def __post_init__(self) -> None:
        self.starts, self.plan = list(self.kept.starts), self.kept.plan
        self.from_before, self.aside = len(self.starts), self.kept.set_aside

    def until_verdict(self) -> SpeedVerdict:
        while True:
            seen, counted = self._seen_along_the_run()
            self.plan = replace(
                self.plan,
                far=self.question.far and (seen is None or not seen.known),
                run_steps=self.question.run_steps,
                seen_to=max((start.last_step or 0 for start in self.starts), default=0) or None,
            )
            verdict = self.judge(counted, min_gain=self.question.min_gain, affordable=self._affordable(counted), profiles=self._profiles())
            if verdict.decision != "continue":
                return self._told(verdict)
            last = self.starts[self.from_before :][-UNUSABLE_IN_A_ROW:]
            if len(last) == UNUSABLE_IN_A_ROW and all(start.y is None for start in last):
                return self._told(replace(verdict, decision="inconclusive"))
            final = self._next_start()
            if final is not None:
                return self._told(final)

    def _seen_along_the_run(self) -> tuple[course.Course | None, Sequence[Start]]:
        """How steps change along the run, and the starts as they count then."""
        lines = self.store.steps({start.n for start in self.starts if start.y is not None})
        seen = course.of_starts(self.starts, lines)
        return seen, course.over_the_run(self.starts, lines) if seen is not None and seen.changes else self.starts

    def _next_start(self) -> SpeedVerdict | None:
        """Measure one start and keep it; a verdict when more starts cannot change the answer."""
        n = 1 + max((start.n for start in self.starts), default=0)
        began = time.monotonic()
        how = measure.sequential if self.plan.schedule == "sequential" else free.resident if self.plan.several else measure.resident
        try:
            measured, plan = how(self.bench, n, self.plan, lambda done, total: self.on_progress(f"speed: start {n}, slices", done, total))
            self._refuse_unlike(n, measured)
        except StartFailed as failed:
            return self._failed(n, failed, time.monotonic() - began)
        interrupted = {side: measure.interruptions(self.bench.run_dir(side, n)) for side in SIDES}
        start, warmup = estimate(
            n,
            self.plan.schedule,
            measured["baseline"],
            measured["candidate"],
            spent_s=time.monotonic() - began,
            even_slices=measure.even_slices(interrupted["baseline"]),
            whole_cycles=plan.cycle > 0 and plan.schedule == "resident",
        )
        # What noise calls warm-up in one start must not cost all later ones their steps: the shortest found counts, and
        # each start still drops what it needs.
        usable = [warmup, *([plan.warmup] if any(known.y is not None for known in self.starts) else [])]
        steps = None
        if start.y is not None:
            plan = replace(plan, warmup=max(plan.least_warmup, min(usable)))
            steps = {side: step_profile(measured[side], start.clock) for side in SIDES}
            held = {side: frozenset().union(*(at or {}).values()) for side, at in interrupted.items()}
            start = spans.extended(start, measured, warmup, held)
            steps["course"] = spans.rows(start, measured, warmup, held)
        self._keep(start, plan, steps)
        short = measured["baseline"].early[-1].ended  # there are no more steps than these
        hopeless = start.reason.startswith(SAME_STEPS) or (start.reason.startswith(TOO_SHORT) and short)
        return SpeedVerdict("inconclusive", None, start.reason) if hopeless else None

    def _refuse_unlike(self, n: int, measured: dict[Side, Measured]) -> None:
        """Raises `StartFailed` when the two sides ran under unlike versions or devices; sets aside starts that are unlike this one."""
        seen = {side: fingerprint.versions(headers(self.bench.run_dir(side, n))) for side in SIDES}
        unlike = [
            f"{name} {seen['baseline'][name]} in the baseline, {seen['candidate'][name]} in the candidate"
            for name in seen["baseline"].keys() & seen["candidate"].keys()
            if seen["baseline"][name] != seen["candidate"][name]
        ]
        if measured["baseline"].device != measured["candidate"].device:
            where = [f"the {side} on {'a device' if measured[side].device else 'the CPU'}" for side in SIDES]
            unlike.append(" and ".join(where))
        if unlike:
            raise StartFailed("candidate", "unlike", f"the two sides cannot be compared: {'; '.join(sorted(unlike))}")
        common = {**seen["baseline"], "device": "yes" if measured["baseline"].device else "no"}
        length = measured["baseline"].ended_at
        if length is not None:  # another input shows in how many steps it makes
            common["the number of its steps"] = str(length)
            if self.length not in (None, length):  # the same input, moments ago
                made = f"the baseline made {self.length} steps to its end, and {length} when it was started again"
                raise StartFailed("baseline", "unlike", f"the program does not repeat itself: {made}; {BY_TIME}")
            self.length = length
        aside = self.store.agree(common, resume=self.resume)
        if aside:
            self.starts, self.from_before, self.aside = [], 0, aside

    def _failed(self, n: int, failed: StartFailed, spent_s: float) -> SpeedVerdict | None:
        """Another way to measure where that may help; else the final verdict, or `ProgramFailed`."""
        start = Start(n, self.plan.schedule, None, None, "wall", reason=failed.message, spent_s=spent_s)
        resident = self.plan.schedule == "resident"
        if failed.kind == "unsettled":
            self._keep(start, replace(self.plan, pin=False))
            return None
        if resident and failed.kind == "others" and not self.plan.several:
            start = replace(start, reason=f"{start.reason}; going on without pacing them")
            self._keep(start, replace(self.plan, several=True), clean=False)
            return None
        if resident and failed.kind in {*FALL_BACK, "others"}:
            start = replace(start, reason=f"{start.reason}; going on with one program after the other")
            self._keep(start, replace(self.plan, schedule="sequential", first=failed.side), clean=False)
            return None
        self._keep(start, self.plan, clean=False)
        if failed.kind == "silent" and self.bench.left() <= BARELY_S:
            return self._out_of_time()
        if failed.kind == "untrained":
            with contextlib.suppress(ProgramFailed if failed.side == "candidate" else ()):
                trace.load(self.bench.run_dir(failed.side, n))
        if failed.side == "baseline" and failed.record is not None:
            launch.require_success(failed.record)
            raise ProgramFailed(failed.message, "check the command after `--`", output=failed.record.output_tail)
        if failed.kind in {"crashed", "untrained"}:
            return SpeedVerdict("reject", None, failed.message)
        return SpeedVerdict("inconclusive", None, failed.message)

    def _out_of_time(self) -> SpeedVerdict:
        """What the starts say that came to their end within the budget."""
        _, starts = self._seen_along_the_run()
        counted = sum(start.y is not None for start in starts)
        verdict = self.judge(starts, min_gain=self.question.min_gain, affordable=counted, profiles=self._profiles())
        return verdict if verdict.decision != "continue" else replace(verdict, decision="inconclusive")

    def _keep(self, start: Start, plan: Plan, steps: dict[str, Any] | None = None, *, clean: bool = True) -> None:
        self.store.append(start, steps)
        self.starts.append(start)
        self.plan = plan
        self.store.save_plan(plan)
        if clean:
            for side in SIDES:
                for path in self.bench.run_dir(side, start.n).glob("events-*.bin"):
                    path.unlink(missing_ok=True)
                shutil.rmtree(self.bench.run_dir(side, start.n) / "pace", ignore_errors=True)

    def _profiles(self) -> list[dict[str, Any]]:
        """Step times of the starts that count, where steps with the same index are the same work."""
        counted = {start.n for start in self.starts if start.y is not None}
        same = self.question.work[0] == self.question.work[1]
        return self.store.steps(counted) if same and len(counted) >= stats.OWN_TAIL_STARTS else []

    def _affordable(self, starts: Sequence[Start]) -> int | None:
        """How many of `starts` that count the budget can reach in all, at their usual price; None before one has shown its cost."""
        counted = [start for start in starts if start.y is not None]
        left = self.bench.budget_s - (time.monotonic() - self.began)
        if not counted:
            return None if left > 0 else 0
        each = max(1.0, statistics.median(start.spent_s - (0.0 if self.plan.far else start.far_s) for start in counted))
        return len(counted) + max(0, math.floor(left / each))

    def _told(self, verdict: SpeedVerdict) -> SpeedVerdict:
        """The verdict with where its starts come from; an inconclusive one with what a start costs and how busy the machine was."""
        counted = [start for start in self.starts if start.y is not None]
        said = [verdict.reason]
        if verdict.decision == "inconclusive" and counted:
            each = sum(start.spent_s for start in counted) / len(counted)
            shares = [start.runqueue_share for start in counted if start.runqueue_share is not None]
            waited = f", {sum(shares) / len(shares):.0%} of the time spent waiting for a core" if shares else ""
            pressure = _pressure()
            busy = f", CPU pressure {pressure}" if pressure else ""
            said.append(f"a start takes {each:.0f} s, the budget was {self.bench.budget_s:.0f} s{waited}{busy}")
            if len(counted) < stats.LEAST_STARTS:
                said.append(f"{stats.LEAST_STARTS} starts take about {_minutes(stats.LEAST_STARTS * each)}: give --budget more than that")
            if len(counted) >= stats.LOOKS[-1]:
                said.append(f"all {stats.LOOKS[-1]} starts that the rule allows are used: asking again gives the same answer")
        if self.from_before and counted:
            new = len(self.starts) - self.from_before
            said.append(f"{self.from_before} of the starts were measured before and count on{'' if new else '; none was added'}")
        if self.aside:
            said.append(self.aside)
        return replace(verdict, reason="; ".join(said))


def _first_plan(question: Question, daemon: str) -> Plan:
    """`daemon`: what has the processes started elsewhere (srun), where no tree of ours can be frozen."""
    warmup = max(stats.WARMUP_LEAST, question.first_epoch + 1 if question.first_epoch else 0)
    return Plan(schedule="sequential" if daemon else "resident", warmup=warmup, least_warmup=warmup, cycle=question.cycle)


def _unit(question: Question) -> str:
    return f"{question.unit} after the first epoch" if question.first_epoch else question.unit


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    return math.log(ours / theirs) if ours and theirs else None


def _last_reason(starts: Sequence[Start]) -> str:
    return next((start.reason for start in reversed(starts) if start.reason), "")


def _digest(baseline: Command, candidate: Command, question: Question, online: bool, writable: Sequence[str]) -> str:
    """What must not change between the starts of one comparison; a digest, because commands may hold secrets."""
    plain = [to_plain(baseline), to_plain(candidate), question.identity, question.terms, online, sorted(writable)]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _pressure() -> str:
    """Share of the last minute in which a task waited for a core; "" where the kernel does not say."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        words = Path("/proc/pressure/cpu").read_text(encoding="ascii").split()
        return f"{float(next(word for word in words if word.startswith('avg60=')).partition('=')[2]):.0f} %"
    return ""


def _weather() -> dict[str, str]:
    """How busy the machine was at the end."""
    facts = {}
    with contextlib.suppress(OSError):
        facts["load"] = " ".join(f"{load:.1f}" for load in os.getloadavg())
        facts["cpu_pressure"] = Path("/proc/pressure/cpu").read_text(encoding="ascii").splitlines()[0]
    return facts
