"""Is the candidate faster? Paired, interleaved starts of both programs until the rule of `stats` has a verdict."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import platform
import shutil
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainflash import launch, stats, trace
from trainflash.bench import measure
from trainflash.bench.estimate import SAME_STEPS, TOO_SHORT, estimate
from trainflash.bench.measure import STARTS_TO_AFFORD, Bench, Plan, StartFailed
from trainflash.bench.store import Store
from trainflash.errors import ProgramFailed
from trainflash.schema import Command, Runs, Sandbox, Side, SpeedVerdict, Start, to_plain, write_document

__all__ = ["STARTS_TO_AFFORD", "compare", "cost", "judge_starts", "with_lead"]

OnProgress = Callable[[str, int, int], None]

GRACE = 1.25  # a start that began within the budget may take so much longer, or its time was wasted
GRACE_S = 20.0
UNUSABLE_IN_A_ROW = 3  # starts without a y before we stop asking
FALL_BACK = frozenset({"others", "memory", "short", "crashed"})  # two copies may not go together where one alone does


def compare(
    sandbox: Sandbox,
    baseline: Command,
    candidate: Command,
    directory: Path,
    *,
    budget_s: float,
    on_progress: OnProgress | None = None,
    resume: bool = False,
    min_gain: float = stats.LEAST_GAIN,
    identity: str = "",
    first_epoch: int = 0,
    online: bool = False,
    writable: Sequence[str] = (),
    redact: Callable[[str], str] | None = None,
    shown: Command | None = None,
) -> tuple[Runs, SpeedVerdict]:
    """Measure `baseline` in the sandbox's baseline checkout against `candidate` in its worktree, as both stand.

    Starts are appended to `directory/starts.jsonl` as they are measured and `runs.json` is written at the end; with `resume` the
    starts that are there already count. `identity` is whatever else must not change between them, such as the two commits.
    The first `first_epoch` steps are passed unmeasured: a cache that they fill pays only later. `shown` is the baseline's command as it
    may be written down. `on_progress` gets what is measured, slices done, and of how many. The verdict is `inconclusive` as soon as
    `budget_s` seconds cannot buy one, and `reject` when the candidate fails by itself; it is never `continue`.
    Raises `ProgramFailed` when the baseline fails or never trains, `UsageError` when resuming something else.
    """
    store = Store(directory)
    compared = _digest(baseline, candidate, identity)
    starts, plan = store.begin(compared, _first_plan(first_epoch), resume=resume)
    began = time.monotonic()
    bench = Bench(
        sandbox, {"baseline": baseline, "candidate": candidate}, directory, began + GRACE * budget_s + GRACE_S, budget_s,
        {"online": online, "writable": writable} | ({"redact": redact} if redact else {}),
    )  # fmt: skip
    run = _Comparison(bench, store, compared, list(starts), plan, began, budget_s, min_gain, on_progress or (lambda *_: None))
    verdict: SpeedVerdict | None = None
    try:
        verdict = run.until_verdict()
    finally:
        runs = Runs(
            command=shown or baseline,
            starts=tuple(run.starts),
            warmup_steps=run.plan.warmup,
            unit="step after the first epoch" if first_epoch else "step",
            machine=_machine(),
            stopped_because=verdict.reason if verdict else "interrupted or failed",
        )
        write_document(directory / "runs.json", runs)
    return runs, verdict


def with_lead(verdict: SpeedVerdict, starts: Sequence[Start], steps: int | None) -> SpeedVerdict:
    """An accepted candidate that lost time before the timed steps must earn it back within the `steps` that follow (None: unknown).

    It lost time when the mean of what it came later by is two standard errors above 0; then the break-even step count is said.
    """
    counted = [
        start for start in starts if start.y is not None and start.baseline_lead_s is not None and start.candidate_lead_s is not None
    ]
    if verdict.decision != "accept" or len(counted) < 2:
        return verdict
    if steps is not None:
        verdict = replace(verdict, reason=f"{verdict.reason}; the whole run about {_whole(counted, steps):.2f} times as fast")
    later = [start.candidate_lead_s - start.baseline_lead_s for start in counted]
    lost_s = statistics.fmean(later)
    if lost_s <= 2 * statistics.stdev(later) / math.sqrt(len(later)):
        return verdict
    gained_s = statistics.fmean((start.baseline_step_ms or 0.0) - (start.candidate_step_ms or 0.0) for start in counted) / 1e3
    needed = math.ceil(lost_s / gained_s) if gained_s > 0 else None
    if needed is None or (steps is not None and needed > steps):
        reason = f"the steps are faster ({verdict.reason}), but it loses {lost_s:.1f} s before them, more than the run wins back"
        return replace(verdict, decision="reject", reason=reason)
    return replace(verdict, reason=f"{verdict.reason}; it loses {lost_s:.1f} s before them and has won that back after {needed} steps")


def _whole(starts: Sequence[Start], steps: int) -> float:
    """Speed-up of the program from start to end: what came before the timed steps, and `steps` of them."""
    ours = sum((start.baseline_lead_s or 0.0) + steps * (start.baseline_step_ms or 0.0) / 1e3 for start in starts)
    theirs = sum((start.candidate_lead_s or 0.0) + steps * (start.candidate_step_ms or 0.0) / 1e3 for start in starts)
    return ours / theirs


def _first_plan(first_epoch: int) -> Plan:
    warmup = max(stats.WARMUP_LEAST, first_epoch + 1 if first_epoch else 0)
    return Plan(warmup=warmup, least_warmup=warmup)


def cost(budget_s: float, *, start_s: float | None = None) -> str:
    """What a comparison will cost, in one sentence to be said beforehand; `start_s` is what one start of the pair took before."""
    least, most = stats.LOOKS[0], stats.LOOKS[-1]
    sentence = f"starts the program {2 * least} to {2 * most} times, each version {least} to {most} times"
    if start_s:
        sentence += f", about {_minutes(least * start_s)} to {_minutes(min(most * start_s, budget_s))}"
    return f"{sentence}; ends after {_minutes(budget_s)} at the latest (--budget)"


def judge_starts(starts: Sequence[Start], *, min_gain: float = stats.LEAST_GAIN, affordable: int | None = None) -> SpeedVerdict:
    """The rule on measured starts. Where some starts have no net time, all are judged by wall time."""
    counted = [start for start in starts if start.y is not None]
    mixed = len({start.clock for start in counted}) > 1
    ys = [start.y_wall if mixed else start.y for start in counted]
    verdict = stats.decide(ys, [start.y_wall for start in counted], min_gain=min_gain, affordable=affordable)
    left_out = len(starts) - len(counted)
    if left_out:
        counted_out = "1 more start" if left_out == 1 else f"{left_out} more starts"
        verdict = replace(verdict, reason=f"{verdict.reason}; {counted_out} did not count: {_last_reason(starts)}")
    return stats.with_tails(
        verdict,
        [_ratio(start.baseline_p95_ms, start.candidate_p95_ms) for start in counted],
        [_ratio(start.baseline_p99_ms, start.candidate_p99_ms) for start in counted],
    )


@dataclass
class _Comparison:
    bench: Bench
    store: Store
    compared: str
    starts: list[Start]
    plan: Plan
    began: float
    budget_s: float
    min_gain: float
    on_progress: OnProgress

    def until_verdict(self) -> SpeedVerdict:
        """Start after start, until the rule, the budget or the program says enough."""
        while True:
            verdict = judge_starts(self.starts, min_gain=self.min_gain, affordable=self._affordable())
            if verdict.decision != "continue":
                return self._with_cost(verdict)
            last = self.starts[-UNUSABLE_IN_A_ROW:]
            if len(last) == UNUSABLE_IN_A_ROW and all(start.y is None for start in last):
                return replace(verdict, decision="inconclusive")
            final = self._next_start()
            if final is not None:
                return final

    def _next_start(self) -> SpeedVerdict | None:
        """Measure one start and keep it; a verdict when more starts cannot change the answer."""
        n = len(self.starts) + 1
        began = time.monotonic()
        how = measure.resident if self.plan.schedule == "resident" else measure.sequential
        try:
            measured, plan = how(self.bench, n, self.plan, lambda done, total: self.on_progress(f"speed: start {n}, slices", done, total))
        except StartFailed as failed:
            return self._failed(n, failed, time.monotonic() - began)
        start, warmup = estimate(
            n,
            self.plan.schedule,
            measured["baseline"],
            measured["candidate"],
            spent_s=time.monotonic() - began,
            even_slices=measure.even_slices(self._run_dir(n, "baseline")),
        )
        # What noise calls warm-up in one start must not cost all later ones their steps: the shortest found counts, and
        # each start still drops what it needs.
        usable = [warmup, *([plan.warmup] if any(known.y is not None for known in self.starts) else [])]
        self._keep(start, plan if start.y is None else replace(plan, warmup=max(plan.least_warmup, min(usable))))
        if start.reason.startswith(SAME_STEPS) or (start.reason.startswith(TOO_SHORT) and measured["baseline"].ended_at is not None):
            return SpeedVerdict("inconclusive", None, start.reason)
        return None

    def _failed(self, n: int, failed: StartFailed, spent_s: float) -> SpeedVerdict | None:
        """Fall back to one program after the other where that may help; else the final verdict, or `ProgramFailed`."""
        start = Start(n, self.plan.schedule, None, None, "wall", reason=failed.message, spent_s=spent_s)
        together = self.plan.schedule == "resident"
        if together and failed.kind in FALL_BACK:
            start = replace(start, reason=f"{start.reason}; going on with one program after the other")
            self._keep(start, replace(self.plan, schedule="sequential", first=failed.side), clean=False)
            return None
        self._keep(start, self.plan, clean=False)
        if failed.kind == "untrained":
            with contextlib.suppress(ProgramFailed if failed.side == "candidate" else ()):
                trace.load(self._run_dir(n, failed.side))
        if failed.side == "baseline" and failed.record is not None:
            launch.require_success(failed.record)
            raise ProgramFailed(failed.message, "check the command after `--`", output=failed.record.output_tail)
        if failed.kind in {"crashed", "untrained"}:
            return SpeedVerdict("reject", None, failed.message)
        return SpeedVerdict("inconclusive", None, failed.message)

    def _keep(self, start: Start, plan: Plan, *, clean: bool = True) -> None:
        self.starts.append(start)
        self.store.append(start)
        self.plan = plan
        self.store.save_plan(self.compared, plan)
        if clean:
            for side in ("baseline", "candidate"):
                for path in self._run_dir(start.n, side).glob("events-*.bin"):
                    path.unlink(missing_ok=True)
                shutil.rmtree(self._run_dir(start.n, side) / "pace", ignore_errors=True)

    def _run_dir(self, n: int, side: Side) -> Path:
        return self.bench.directory / f"start-{n:02d}-{side}"

    def _affordable(self) -> int | None:
        """How many counted starts the budget can reach in all, at the price of the cheapest; None before the first has shown its cost."""
        counted = [start for start in self.starts if start.y is not None]
        left = self.budget_s - (time.monotonic() - self.began)
        if not counted:
            return None if left > 0 else 0
        each = max(1.0, min(start.spent_s for start in counted))
        return len(counted) + max(0, math.floor(left / each))

    def _with_cost(self, verdict: SpeedVerdict) -> SpeedVerdict:
        """An inconclusive verdict says what a start costs and how busy the machine was."""
        counted = [start for start in self.starts if start.y is not None]
        if verdict.decision != "inconclusive" or not counted:
            return verdict
        each = sum(start.spent_s for start in counted) / len(counted)
        shares = [start.runqueue_share for start in counted if start.runqueue_share is not None]
        waited = f", {sum(shares) / len(shares):.0%} of the time spent waiting for a core" if shares else ""
        return replace(verdict, reason=f"{verdict.reason}; a start takes {each:.0f} s, the budget was {self.budget_s:.0f} s{waited}")


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    return math.log(ours / theirs) if ours and theirs else None


def _last_reason(starts: Sequence[Start]) -> str:
    return next((start.reason for start in reversed(starts) if start.reason), "")


def _digest(baseline: Command, candidate: Command, identity: str) -> str:
    """What must not change between the starts of one comparison; a digest, because commands may hold secrets."""
    plain = [to_plain(baseline), to_plain(candidate), identity, platform.node()]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _machine() -> dict[str, str]:
    """What the figures depend on: the machine, its cores, and how busy it was."""
    facts = {"node": platform.node(), "kernel": platform.release(), "cpus": str(len(os.sched_getaffinity(0)))}
    with contextlib.suppress(OSError):
        facts["load"] = " ".join(f"{load:.1f}" for load in os.getloadavg())
        facts["cpu_pressure"] = Path("/proc/pressure/cpu").read_text(encoding="ascii").splitlines()[0]
    return facts
