"""Do both sides end in the same place? Whole runs under several seeds, paired by seed, and the final metric with its interval.

The final metric of one run is a poor signal (it moved for the better in a quarter of broken programs), so the unit is the pair of runs
with one seed. A candidate that ends better is refused as much as one that ends worse: it trains something else.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainflash.fidelity import reuse
from trainflash.fidelity.attempt import SEED, Attempt, Bounds, Progress, Starter
from trainflash.fidelity.metric import Metric
from trainflash.fidelity.record import Record
from trainflash.fidelity.reuse import Kept, Run
from trainflash.schema import Check, Command, Fidelity, Sandbox
from trainflash.stats import t_quantile

LEAST_SEEDS = 3
SEEDS = 5
_LEVEL = 0.975  # two-sided 95 %
_END = 0.1  # share of the updates, at the end, whose mean loss stands in for a metric
_SPREADS = 1.0  # standard deviations between seeds that both sides may lie apart, where no tolerance is given


@dataclass(frozen=True)
class Plan:
    """`seeds` runs of each side, each at most `limit_s` seconds long. `metric` None: the mean training loss at the end."""

    seeds: int = SEEDS
    limit_s: float = 3600.0
    metric: Metric | None = None


def check(
    sandbox: Sandbox,
    baseline: Command,
    candidate: Command,
    directory: Path,
    plan: Plan,
    *,
    baseline_record: Path | None = None,
    on_progress: Progress | None = None,
    online: bool = False,
    writable: Sequence[str] = (),
    redact: Callable[[str], str] | None = None,
) -> Check:
    """Train both sides whole under each seed and compare where they end; completed runs in `directory` count when called again.

    `baseline_record` is a folder, shared by experiments, that keeps those of the baseline.
    """
    starter = Starter(sandbox, None, Bounds(), on_progress, online, writable, redact, gather=plan.metric is not None)
    keys = {"baseline": reuse.key_of(sandbox, "baseline", baseline), "candidate": reuse.key_of(sandbox, "candidate", candidate)}
    places = {"baseline": baseline_record or directory / "baseline", "candidate": directory / "candidate"}
    ends: list[tuple[float, float]] = []
    for number in range(plan.seeds):
        found = _pair(starter, {"baseline": baseline, "candidate": candidate}, places, keys, number, plan)
        if isinstance(found, Check):
            return found
        ends.append(found)
    return judge(ends, plan.metric.tolerance if plan.metric else None)


def judge(ends: Sequence[tuple[float, float]], tolerance: float | None) -> Check:
    """The verdict on `(baseline, candidate)` for each seed.

    Equal: the 95 % interval of the mean paired difference lies within the margin (the tolerance, else the spread between the seeds of
    the baseline).
    Changed: the interval lies wholly outside 0 and the mean beyond the margin. Else it is open, with the seeds that were not enough.
    """
    name = "convergence"
    if len(ends) < LEAST_SEEDS:
        return Check(name, None, f"{len(ends)} seeds, at least {LEAST_SEEDS} are needed")
    if not all(math.isfinite(value) for both in ends for value in both):
        gone = any(math.isfinite(old) and not math.isfinite(new) for old, new in ends)
        return Check(name, False if gone else None, "the final metric is not finite")
    deltas = [new - old for old, new in ends]
    mean, half = statistics.fmean(deltas), t_quantile(_LEVEL, len(deltas) - 1) * statistics.stdev(deltas) / math.sqrt(len(deltas))
    margin = tolerance if tolerance is not None else _SPREADS * statistics.stdev(old for old, _ in ends)
    old = statistics.fmean(old for old, _ in ends)
    what = f"final metric {old:.5g} → {old + mean:.5g}, difference {mean:+.3g} ± {half:.2g} over {len(ends)} seeds, margin {margin:.2g}"
    if abs(mean) + half <= margin or not any(deltas):
        return Check(name, True, what)
    if abs(mean) > half and abs(mean) > margin:
        return Check(name, False, what)
    return Check(name, None, f"{what}: more seeds are needed")


def applied(found: Fidelity, check: Check) -> Fidelity:
    """`found` with what the longer runs showed: a difference refuses, an open answer leaves the whole open."""
    checks = (*found.checks, check)
    reason = f"{check.name}: {check.evidence}"
    if check.ok is False:
        changed = tuple(dict.fromkeys((*found.changed, "convergence")))
        return replace(found, verdict="changed", changed=changed, checks=checks, reasons=(reason, *found.reasons))
    if check.ok is None:
        verdict = found.verdict if found.verdict == "changed" else "inconclusive"
        return replace(found, verdict=verdict, checks=checks, reasons=(reason, *found.reasons), not_judged=(*found.not_judged, check.name))
    return replace(found, checks=checks, reasons=(*found.reasons, reason))


def _pair(
    starter: Starter, commands: dict[str, Command], places: dict[str, Path], keys: dict[str, str | None], number: int, plan: Plan
) -> tuple[float, float] | Check:
    """Where both sides end under one seed; a check that says why there is no such figure."""
    started: dict[str, Attempt] = {}
    runs: dict[str, Run] = {}
    name = f"seed-{number}"
    try:
        for side, command in commands.items():
            known = reuse.load(places[side], keys[side], None, first=name).get(name)
            if known is not None and known.record.whole and (plan.metric is None or known.outputs is not None):
                runs[side] = known
                continue
            environment = {"TRAINFLASH_VARY": f"seed:{number}"}
            started[side] = starter.start(name, side, command, places[side], environment=environment, seed=SEED + number)  # type: ignore[arg-type]
        if started:
            starter.reach(started.values(), None, plan.limit_s)
        for side, attempt in started.items():
            record, seconds = attempt.record, attempt.seconds
            attempt.end()
            if not record.whole:
                why = f"was stopped after {seconds:.0f} s" if attempt.cut else "failed"
                return Check("convergence", False if side == "candidate" and not attempt.cut else None, f"{side}, seed {number}: {why}")
            runs[side] = Run(record, seconds, attempt.log, attempt.outputs)
            reuse.keep(places[side], keys[side], None, {name: Kept(attempt.run_dir.name, True, seconds)}, first=name)
    finally:
        for attempt in started.values():
            attempt.end()
    ends = {side: _end(run, plan.metric) for side, run in runs.items()}
    missing = next((side for side, end in ends.items() if end is None), None)
    if missing is not None:
        return Check(
            "convergence", False if missing == "candidate" and ends["baseline"] is not None else None, f"{missing}: no final metric"
        )
    return ends["baseline"] or 0.0, ends["candidate"] or 0.0


def _end(run: Run, metric: Metric | None) -> float | None:
    if metric is not None:
        values = metric.values(run)
        return values[-1] if values else None
    return mean_final_loss(run.record)


def mean_final_loss(record: Record) -> float | None:
    """Mean loss of the last tenth of the updates, over all processes; None where no loss was seen."""
    losses = []
    for stream in record.streams:
        last = stream.updates[-max(1, round(_END * len(stream.updates))) :] if stream.updates else ()
        losses += [update.loss for update in last if update.loss is not None]
    return math.fsum(losses) / len(losses) if losses else None
