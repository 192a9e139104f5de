"""What a candidate costs or saves beside the time of a step: the owner's whole run, memory and CPU time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from trainflash.bench.trends import COVERED, Trend, grows_more
from trainflash.bench.trends import said as told
from trainflash.schema import Resources, SpeedVerdict, Start, WholeRun

MORE = 1.25  # from so many times on it is said; CPU time and memory of identical programs differ by less than a tenth
MORE_MB = 50.0  # less than that much more memory is nobody's concern


@dataclass(frozen=True)
class OwnersRun:
    """What is known of the program as its owner runs it. Steps are the baseline's and counted from the first timed one.

    `breaks` names what interrupts the steps (evaluations, checkpoints): every how many steps (None: once, or nobody knows), and its seconds
    in the whole run of the baseline. Where the timed steps are too few to be sure to hold one, it weighs as much on both sides.
    """

    steps: int | None = None
    breaks: Mapping[str, tuple[float | None, float]] = field(default_factory=dict)

    def untimed(self, timed_steps: int) -> dict[str, float]:
        """Seconds of the breaks that `timed_steps` steps in a row may not hold."""
        return {name: spent for name, (every, spent) in self.breaks.items() if every is None or every > timed_steps}


def resources(starts: Sequence[Start]) -> Resources | None:
    """Means and peaks over the starts that count; None where there are none."""
    counted = [start for start in starts if start.y is not None]
    if not counted:
        return None
    return Resources(
        baseline_cpu_ms=_mean([_per_step(start.baseline_cpu_s, start) for start in counted]),
        candidate_cpu_ms=_mean([_per_step(start.candidate_cpu_s, start) for start in counted]),
        baseline_peak_mb=_peak([start.baseline_peak_mb for start in counted]),
        candidate_peak_mb=_peak([start.candidate_peak_mb for start in counted]),
        baseline_device_peak_mb=_peak([start.baseline_device_peak_mb for start in counted]),
        candidate_device_peak_mb=_peak([start.candidate_device_peak_mb for start in counted]),
    )


def remarks(used: Resources) -> list[str]:
    """What the candidate needs clearly more of."""
    found = []
    for name, ours, theirs in (
        ("host memory", used.baseline_peak_mb, used.candidate_peak_mb),
        ("device memory", used.baseline_device_peak_mb, used.candidate_device_peak_mb),
    ):
        if ours and theirs and theirs >= MORE * ours and theirs - ours >= MORE_MB:
            found.append(f"it takes {theirs / ours:.1f} times the {name}: {theirs:,.0f} instead of {ours:,.0f} MB")
    ours, theirs = used.baseline_cpu_ms, used.candidate_cpu_ms
    if ours and theirs and theirs >= MORE * ours:
        found.append(f"it takes {theirs / ours:.1f} times the CPU time: {theirs:.3g} instead of {ours:.3g} ms a step")
    return found


def with_costs(
    verdict: SpeedVerdict,
    starts: Sequence[Start],
    run: OwnersRun,
    *,
    work_ratio: float = 1.0,
    trends: Mapping[str, Trend] | None = None,
) -> SpeedVerdict:
    """`verdict` with the whole run and the other resources, and with a reason for each that got clearly worse.

    An accepted candidate that loses time before the timed steps (the mean loss is two standard errors above 0) must earn it back
    within the run, else it is rejected; where the run's length is unknown, the break-even step count is said. `work_ratio`: samples
    of a candidate's step ÷ those of a baseline's. `trends`: how the steps of both sides change; a candidate whose steps get slower
    where the baseline's do not is never accepted on its early ones.
    """
    used = resources(starts)
    whole = whole_run(starts, run, work_ratio=work_ratio, trends=trends)
    verdict = replace(verdict, resources=used, whole_run=whole)
    if verdict.decision != "accept" or whole is None:
        return verdict
    if trends is not None and grows_more(trends) and not _covered(trends, run):
        slower = whole.speedup is not None and whole.speedup <= 1.0
        about = f"; going on like that the run of {whole.steps:,} steps is {whole.speedup:.2f} times as fast" if whole.speedup else ""
        reason = f"its steps are faster at first, and get slower where the baseline's do not: {told(trends, run.steps)}{about}"
        return replace(verdict, decision="reject" if slower else "inconclusive", reason=reason)
    said = [verdict.reason, *([told(trends, run.steps)] if trends is not None else [])]
    if whole.speedup is not None:
        like = f", with {' and '.join(whole.not_timed)} as before" if whole.not_timed else ""
        said.append(f"judged by the step; the whole run of {whole.steps:,} steps about {whole.speedup:.2f} times as fast{like}")
    else:
        said.append("judged by the step; how long the whole run is, is not known")
    lost_s = whole.lost_s or 0.0
    if lost_s > 0 and (whole.break_even_steps is None or (whole.steps is not None and whole.break_even_steps > whole.steps)):
        reason = f"the steps are faster ({verdict.reason}), but it loses {lost_s:.1f} s before them, more than the run wins back"
        return replace(verdict, decision="reject", reason=reason)
    if lost_s > 0:
        said.append(f"it loses {lost_s:.1f} s before them and has won that back after {whole.break_even_steps:,} steps")
    return replace(verdict, reason="; ".join([*said, *(remarks(used) if used else [])]))


def _covered(trends: Mapping[str, Trend], run: OwnersRun) -> bool:
    known = trends["candidate"]
    return run.steps is not None and known.last - known.first >= COVERED * run.steps


def whole_run(
    starts: Sequence[Start], run: OwnersRun, *, work_ratio: float = 1.0, trends: Mapping[str, Trend] | None = None
) -> WholeRun | None:
    """The run from start to end, extrapolated from the starts that count: start-up and first epoch, steps, and what no step showed."""
    counted = [
        start
        for start in starts
        if start.y is not None and start.baseline_lead_s is not None and start.candidate_lead_s is not None and start.baseline_step_ms
    ]
    if len(counted) < 2:
        return None
    ours_s = statistics.fmean(start.baseline_step_ms or 0.0 for start in counted) / 1e3
    theirs_s = statistics.fmean(start.candidate_step_ms or 0.0 for start in counted) / 1e3 / work_ratio
    if run.steps is not None and trends is not None and any(trend.sure for trend in trends.values()):
        ours_s, theirs_s = (trends[side].mean_ms(run.steps) / 1e3 for side in ("baseline", "candidate"))
    later = [(start.candidate_lead_s or 0.0) - (start.baseline_lead_s or 0.0) for start in counted]
    lead = statistics.fmean(start.baseline_lead_s or 0.0 for start in counted)
    lost_s = statistics.fmean(later)
    certain = lost_s > 2 * statistics.stdev(later) / math.sqrt(len(later))
    gained_s = ours_s - theirs_s
    untimed = run.untimed(min(start.steps for start in counted))
    untimed_s = sum(untimed.values())
    speedup = baseline_s = candidate_s = None
    if run.steps is not None:
        baseline_s = lead + run.steps * ours_s + untimed_s
        candidate_s = lead + lost_s + run.steps * theirs_s + untimed_s
        speedup = baseline_s / candidate_s
    return WholeRun(
        speedup=speedup,
        steps=run.steps,
        baseline_s=baseline_s,
        candidate_s=candidate_s,
        startup_s=lead,
        lost_s=lost_s if certain else 0.0,
        break_even_steps=math.ceil(round(lost_s / gained_s, 6)) if certain and gained_s > 0 else None,
        not_timed=tuple(sorted(untimed)),
    )


def _per_step(seconds: float | None, start: Start) -> float | None:
    return seconds / start.steps * 1e3 if seconds is not None and start.steps else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _peak(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
