"""The paired mode: that commit and this one, interleaved here and now. What the pairs show is held against the tolerances.

The pairs are those of `bench`; only the question differs. `bench` asks whether a candidate is faster by enough; the gate asks whether it
is slower by too much, and is done as soon as the interval of the speed lies on one side of the tolerance.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainflash import stats
from trainflash.gate import comparison, noise
from trainflash.gate.measure import metrics
from trainflash.gate.tolerances import ToleranceConfig, rule
from trainflash.schema import Resources, Speedup, SpeedVerdict, Start
from trainflash.schema.gate_changes import GateCheck

MOST_STARTS = stats.LOOKS[-1]
Judge = Callable[..., SpeedVerdict]
Losses = Sequence[tuple[int, float]]  # (step, loss)


@dataclass(frozen=True)
class Work:
    """Tokens and samples of one step of each side, (baseline, candidate); None: not counted."""

    tokens: tuple[float, float] | None = None
    samples: tuple[float, float] | None = None

    @property
    def compared(self) -> tuple[tuple[float, float], str]:
        """What a time is per, for `bench`: steps, or tokens or samples where a step of the two sides is other work."""
        for each, unit in ((self.tokens, "token"), (self.samples, "sample")):
            if each is not None and abs(each[1] / each[0] - 1) > comparison.SAME_WORK:
                return each, unit
        return (1.0, 1.0), "step"


def limit(tolerances: ToleranceConfig, unit: str = "step") -> float:
    """The lowest log(candidate's speed ÷ baseline's) that is tolerated: the stricter of throughput and step time."""
    throughput = math.log1p(-tolerances.throughput_drop_pct / 100)
    return throughput if unit != "step" else max(throughput, -math.log1p(tolerances.step_time_increase_pct / 100))


def judge_by(least: float, most_starts: int = MOST_STARTS) -> Judge:
    """A judge for `bench.compare`: accept is within `least` (log speed), reject is beyond it.

    It looks after as many starts as the rule of `trainflash.stats` does, with the same interval; total wall time must not speak against it.
    """

    def judge(starts: Sequence[Start], *, affordable: int | None = None, **_: Any) -> SpeedVerdict:
        counted = [start for start in starts if start.y is not None and start.y_wall is not None]
        ys = log_speeds(counted)
        looks = [look for look in stats.LOOKS if look <= most_starts]
        last = max((look for look in looks if affordable is None or look <= affordable), default=0)
        final = not any(len(ys) < look <= last for look in looks)
        unusable = [start for start in starts if start.y is None]
        left_out = f"; {len(unusable)} did not count: {unusable[-1].reason}" if unusable else ""
        if len(ys) < stats.LEAST_STARTS:
            said = f"{len(ys)} of at least {stats.LEAST_STARTS} starts{left_out}"
            return SpeedVerdict("inconclusive" if final else "continue", None, said)
        seen = stats.interval(ys, [start.scatter for start in counted])
        speedup = Speedup(math.exp(seen.mean), math.exp(seen.low), math.exp(seen.high), len(ys))
        low, high = _wall(counted)
        said = f"speed {speedup.mean:.3f} [{speedup.ci_low:.3f}, {speedup.ci_high:.3f}] over {len(ys)} starts{left_out}"
        verdict = SpeedVerdict("continue", speedup, said)
        if len(ys) in looks:
            if seen.low >= least - 1e-9 and high >= least:
                verdict = replace(verdict, decision="accept")
            elif seen.high < least - 1e-9 and low < least:
                verdict = replace(verdict, decision="reject")
        if verdict.decision == "continue" and final:
            said = f"{said}, noise {seen.sd:.1%} a start: neither clearly within {math.exp(least):.3f} nor beyond it"
            verdict = replace(verdict, decision="inconclusive", reason=said)
        tails = stats.with_tails(
            replace(verdict, decision="continue"),
            [_ratio(start.baseline_p95_ms, start.candidate_p95_ms) for start in counted],
            [_ratio(start.baseline_p99_ms, start.candidate_p99_ms) for start in counted],
            [start.steps for start in counted],
        )
        return replace(verdict, speedup=tails.speedup)

    return judge


def log_speeds(starts: Sequence[Start]) -> list[float]:
    """log(candidate's speed ÷ baseline's) of each start that counts; by total wall time where some have no net time."""
    counted = [start for start in starts if start.y is not None and start.y_wall is not None]
    mixed = len({start.clock for start in counted}) > 1
    return [start.y_wall if mixed else start.y for start in counted]  # type: ignore[misc]


def checks(
    verdict: SpeedVerdict, starts: Sequence[Start], used: Resources | None, work: Work, tolerances: ToleranceConfig
) -> list[GateCheck]:
    """Throughput and step time from the pairs, the peak of memory, and the slow steps."""
    counted = [start for start in starts if start.y is not None]
    speed = verdict.speedup
    (_, unit), found = work.compared, []
    if speed is None or not counted:
        return [_undecided(verdict, tolerances)]
    ours = statistics.fmean(start.baseline_step_ms or 0.0 for start in counted)
    theirs = statistics.fmean(start.candidate_step_ms or 0.0 for start in counted)
    for figure, sides, per in (("tokens_per_sec", work.tokens, "token"), ("samples_per_sec", work.samples, "sample")):
        if sides is not None and (unit in ("step", per)):
            rates = (sides[0] / ours * 1e3, sides[1] / theirs * 1e3)
            found.append(_check(replace(rule(f"{figure}_p50"), figure=figure), rates, speed, verdict, tolerances))
            break
    if unit == "step":
        found.append(_check(replace(rule("step_time_p50"), figure="step_time"), (ours, theirs), speed, verdict, tolerances))
    else:
        said = f"a step has another number of {unit}s: throughput decides"
        found.append(comparison.skipped(replace(rule("step_time_p50"), figure="step_time"), ours, theirs, tolerances, said))
    if used is not None:
        on_device = used.baseline_device_peak_mb is not None
        before = used.baseline_device_peak_mb if on_device else used.baseline_peak_mb
        now = used.candidate_device_peak_mb if on_device else used.candidate_peak_mb
        if before and now:
            held = rule("memory_peak")
            worse = 100 * (now / before - 1)
            found.append(comparison.bounded(held, "memory_peak", before, now, worse, None, None, tolerances.memory_increase_pct, ""))
    if speed.p95 is not None and stats.tail_is_worse(speed.p95_high):
        found.append(_tail(speed, counted))
    return found


def stability(losses: Sequence[tuple[Losses, Losses]], tolerances: ToleranceConfig) -> GateCheck:
    """The losses of each start, (baseline's, candidate's): one that is no number fails, and so does a rise that the baseline has not.

    Both sides made the same steps, so what is judged is the slope of their difference: it fails where it certainly lies beyond the
    threshold. A rise that the scatter may explain is a warning: more starts of a seeded program would not show more.
    """
    held, limit = rule("loss_slope"), tolerances.loss_slope_threshold
    for _, ours in losses:
        bad = next(((step, loss) for step, loss in ours if not math.isfinite(loss)), None)
        if bad is not None:
            said = f"the loss is {bad[1]} at step {bad[0] + 1}: the training diverged"
            return GateCheck(held.figure, held.gate, held.action, "fail", held.unit, None, None, None, None, None, limit, said)
    joined = [_joined(theirs, ours) for theirs, ours in losses]
    joined = [each for each in joined if len(each) >= metrics.LEAST_FOR_SLOPE]
    if not joined:
        return comparison.skipped(held, None, None, tolerances, f"no start has {metrics.LEAST_FOR_SLOPE} steps with losses on both sides")
    fitted = [noise.slope_of([(step, ours - theirs) for step, theirs, ours in each]) for each in joined]
    half = noise.slope_half_width(fitted, stats.NOISY_QUANTILE) or 0.0
    before, now = (statistics.fmean(noise.slope_of([(each[0], each[side]) for each in one])[0] for one in joined) for side in (1, 2))
    low, high = now - before - half, now - before + half
    result = "pass" if now <= limit or now - before <= limit else "fail" if low > limit else "warn"
    said = (
        f"the loss changes by {now:+.3g} a step instead of {before:+.3g} (between {low:+.3g} and {high:+.3g} more), tolerated is +{limit:g}"
    )
    return GateCheck(held.figure, held.gate, held.action, result, held.unit, before, now, now - before, low, high, limit, said)  # type: ignore[arg-type]


def _joined(theirs: Losses, ours: Losses) -> list[tuple[int, float, float]]:
    """(step, baseline's loss, candidate's) of the steps that both have as numbers."""
    known = dict(theirs)
    return [(step, known[step], loss) for step, loss in ours if math.isfinite(known.get(step, math.nan))]


def _check(held: Any, sides: tuple[float, float], speed: Speedup, verdict: SpeedVerdict, tolerances: ToleranceConfig) -> GateCheck:
    """One figure; the interval decides, and the pairs' own verdict where it could not end there."""
    sign = 1 if held.better == "higher" else -1
    worse, *ends = (comparison.worse_by(held.better, sign * math.log(each)) for each in (speed.mean, speed.ci_low, speed.ci_high))
    tolerated = getattr(tolerances, held.tolerance)
    said = verdict.reason if verdict.decision == "inconclusive" else f"{speed.starts} paired starts"
    found = comparison.bounded(held, held.figure, *sides, worse, min(ends), max(ends), tolerated, said)
    if verdict.decision != "inconclusive":
        return found
    return replace(found, result="inconclusive", said=found.said if said in found.said else f"{found.said}; {said}")


def _tail(speed: Speedup, counted: Sequence[Start]) -> GateCheck:
    """Slow steps that certainly got slower: a warning, however fast the mean is."""
    held = replace(rule("memory_peak"), figure="step_time_p95")
    seen = [(start.baseline_p95_ms, start.candidate_p95_ms) for start in counted if start.baseline_p95_ms and start.candidate_p95_ms]
    before, now = (statistics.fmean(each[side] or 0.0 for each in seen) for side in (0, 1))
    mean, low, high = speed.p95 or 1.0, speed.p95_low or 1.0, speed.p95_high or 1.0
    worse, *ends = (100 * (1 / each - 1) for each in (mean, high, low))
    return comparison.bounded(held, held.figure, before, now, worse, *ends, 100 * (1 / stats.TAIL_HARM - 1), "")


def _undecided(verdict: SpeedVerdict, tolerances: ToleranceConfig) -> GateCheck:
    """No figures: the candidate failed by itself, or nothing could be measured."""
    held = rule("step_time_p50")
    result = "fail" if verdict.decision == "reject" else "inconclusive"
    limit_pct = tolerances.step_time_increase_pct
    return GateCheck("step_time", held.gate, held.action, result, held.unit, None, None, None, None, None, limit_pct, verdict.reason)  # type: ignore[arg-type]


def _wall(starts: Sequence[Start]) -> tuple[float, float]:
    """The 80 % interval of log speed by total wall time."""
    walls = [start.y_wall for start in starts if start.y_wall is not None]
    mean = statistics.fmean(walls)
    half = stats.t_quantile(stats.GUARD_QUANTILE, len(walls) - 1) * statistics.stdev(walls) / math.sqrt(len(walls))
    return mean - half, mean + half


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    return math.log(ours / theirs) if ours and theirs else None
