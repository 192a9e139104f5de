"""What a candidate costs or saves beside the time of a step: the owner's whole run, memory and CPU time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from trainflash import stats
from trainflash.bench.course import Course
from trainflash.bench.course import said as told
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
    passed: int = 0  # steps before the first timed one: a first epoch

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
    course: Course | None = None,
) -> SpeedVerdict:
    """`verdict` with the whole run and the other resources, and with a reason for each that got clearly worse.

    An accepted candidate that loses time before the timed steps (the mean loss is two standard errors above 0) must earn it back
    within the run, else it is rejected; where the run's length is unknown, the break-even step count is said. `work_ratio`: samples
    of a candidate's step ÷ those of a baseline's. `course`: how the steps of both sides change along the run. A candidate whose gain
    gets smaller over the steps that were seen is not accepted on these unless they are the whole run, and one whose gain grows is not
    rejected on them.
    """
    used = resources(starts)
    whole = whole_run(starts, run, work_ratio=work_ratio, course=course)
    verdict = replace(verdict, resources=used, whole_run=whole)
    if whole is None or verdict.decision not in {"accept", "reject"}:
        return verdict
    if course is not None and course.changes:
        verdict = _held_to_the_run(verdict, whole, course, run.passed)
    if verdict.decision != "accept":
        return verdict
    said = [verdict.reason, *([whole.seen] if whole.seen else [])]
    if whole.speedup is not None:
        like = f", with {' and '.join(whole.not_timed)} as before" if whole.not_timed else ""
        how = "measured: " if whole.basis == "measured" else "judged by the step; "
        said.append(f"{how}the whole run of {whole.steps:,} steps {_about(whole)} times as fast{like}")
    elif whole.steps is None:
        said.append("judged by the step; how long the whole run is, is not known")
    else:
        said.append(f"of the whole run of {whole.steps:,} steps nothing is claimed: how they go on was not seen")
    lost_s = whole.lost_s or 0.0
    if lost_s > 0 and (whole.break_even_steps is None or (whole.steps is not None and whole.break_even_steps > whole.steps)):
        reason = f"the steps are faster ({verdict.reason}), but it loses {lost_s:.1f} s before them, more than the run wins back"
        return replace(verdict, decision="reject", reason=reason)
    if lost_s > 0:
        said.append(f"it loses {lost_s:.1f} s before them and has won that back after {whole.break_even_steps:,} steps")
    return replace(verdict, reason="; ".join([*said, *(remarks(used) if used else [])]))


def _held_to_the_run(verdict: SpeedVerdict, whole: WholeRun, seen: Course, passed: int) -> SpeedVerdict:
    """A verdict on steps that change, held against the run: against all of it where that was measured, else against how they go on."""
    if whole.speedup is not None:
        if verdict.decision == "reject":
            return replace(verdict, reason=f"{verdict.reason}; {whole.seen}; the whole run {_about(whole)} times as fast")
        if (whole.ci_low or 0.0) > 1.0:
            return verdict
        slower = (whole.ci_high or math.inf) < 1.0
        reason = f"the whole run is {_about(whole)} times as fast, its steps {verdict.reason}; {whole.seen}"
        return replace(verdict, decision="reject" if slower else "inconclusive", reason=reason)
    if whole.steps is not None and seen.covers(whole.steps + passed):
        return replace(verdict, reason=f"{verdict.reason}; {whole.seen}") if verdict.decision == "reject" else verdict
    going_on = seen.going_on(whole.steps + passed) if whole.steps is not None else None
    grows = "candidate" in seen.slower or not seen.changing
    if verdict.decision == "accept" and seen.gain_falls and (grows or going_on is None or going_on < stats.LEAST_GAIN):
        reason = f"it gains less with each step, and how that ends was not seen: {whole.seen}; {verdict.reason}"
    elif verdict.decision == "reject" and seen.gain_rises and (going_on is None or going_on > 1.0):
        reason = f"it gains more with each step, and how that ends was not seen: {whole.seen}; {verdict.reason}"
    else:
        return verdict
    return replace(verdict, decision="inconclusive", reason=f"{reason}; a larger --budget sees more of the run")


def _about(whole: WholeRun) -> str:
    bounds = f" [{whole.ci_low:.2f}, {whole.ci_high:.2f}]" if whole.ci_low and whole.ci_high else ""
    return f"about {whole.speedup:.2f}{bounds}"


def whole_run(starts: Sequence[Start], run: OwnersRun, *, work_ratio: float = 1.0, course: Course | None = None) -> WholeRun | None:
    """The run from start to end: measured where starts saw its end, else made of start-up and first epoch, steps, and what no step
    showed, as long as the steps do not change along it."""
    counted = [
        start
        for start in starts
        if start.y is not None and start.baseline_lead_s is not None and start.candidate_lead_s is not None and start.baseline_step_ms
    ]
    if len(counted) < 2:
        return None
    changes = course is not None and course.changes
    ended = [start for start in counted if start.run_steps is not None]
    steps = run.steps if run.steps is not None or not ended else (ended[0].run_steps or 0) - run.passed
    ours_s = statistics.fmean(start.baseline_step_ms or 0.0 for start in counted) / 1e3
    theirs_s = statistics.fmean(start.candidate_step_ms or 0.0 for start in counted) / 1e3 / work_ratio
    later = [(start.candidate_lead_s or 0.0) - (start.baseline_lead_s or 0.0) for start in counted]
    lead = statistics.fmean(start.baseline_lead_s or 0.0 for start in counted)
    lost_s = statistics.fmean(later)
    certain = lost_s > 2 * statistics.stdev(later) / math.sqrt(len(later))
    gained_s = ours_s - theirs_s
    claim = _claimed(counted, ended, run, steps, work_ratio, changes)
    return WholeRun(
        speedup=claim.speedup,
        steps=steps,
        baseline_s=claim.baseline_s,
        candidate_s=claim.candidate_s,
        startup_s=lead,
        lost_s=lost_s if certain else 0.0,
        break_even_steps=math.ceil(round(lost_s / gained_s, 6)) if certain and gained_s > 0 and not changes else None,
        not_timed=claim.not_timed,
        ci_low=claim.ci_low,
        ci_high=claim.ci_high,
        basis=claim.basis,
        seen=told(course, None if steps is None else steps + run.passed) if course is not None else "",
        by_step=course.parts if course is not None and changes else (),
    )


@dataclass(frozen=True)
class _Claim:
    speedup: float | None = None
    baseline_s: float | None = None
    candidate_s: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    basis: Literal["measured", "no_trend", "not_claimed"] = "not_claimed"
    not_timed: tuple[str, ...] = ()


def _claimed(
    counted: Sequence[Start], ended: Sequence[Start], run: OwnersRun, steps: int | None, work_ratio: float, changes: bool
) -> _Claim:
    """What may be said of the whole run: of starts that all saw its end, or of steps that do not change, times how many there are."""
    if len(ended) >= (2 if changes else len(counted)):
        passed = any(start.passed for start in ended)
        untimed = run.untimed(0) if passed else {}
        rest = sum(untimed.values())
        sides = [((start.baseline_run_s or 0.0) + rest, (start.candidate_run_s or 0.0) + rest) for start in ended]
        return _claim(sides, "measured", untimed)
    if changes or steps is None:
        return _Claim()
    untimed = run.untimed(min(start.steps for start in counted))
    rest = sum(untimed.values())
    sides = [
        (
            (start.baseline_lead_s or 0.0) + steps * (start.baseline_step_ms or 0.0) / 1e3 + rest,
            (start.candidate_lead_s or 0.0) + steps * (start.candidate_step_ms or 0.0) / 1e3 / work_ratio + rest,
        )
        for start in counted
    ]
    return _claim(sides, "no_trend", untimed)


def _claim(sides: Sequence[tuple[float, float]], basis: Literal["measured", "no_trend"], untimed: Mapping[str, float]) -> _Claim:
    seen = stats.interval([math.log(ours / theirs) for ours, theirs in sides])
    baseline_s, candidate_s = (statistics.fmean(side[at] for side in sides) for at in (0, 1))
    return _Claim(
        math.exp(seen.mean), baseline_s, candidate_s, math.exp(seen.low), math.exp(seen.high), basis, tuple(sorted(untimed))
    )  # fmt: skip


def _per_step(seconds: float | None, start: Start) -> float | None:
    return seconds / start.steps * 1e3 if seconds is not None and start.steps else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _peak(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
