"""How sure are we that it is faster? The decision rule, intervals and percentiles as pure functions.

Words: a *start* is one fresh baseline process and one fresh candidate process measured as a pair; its `y` is
log(baseline time ÷ candidate time), so a speed-up is exp(mean y). The start is the unit of statistics: slices within
one start share the memory layout and the core that their processes happened to get, and intervals over the slices of
one start called identical programs "faster" in 2 to 19 % of cases.

All constants below were chosen on measured pairs of identical and of really slowed CPU programs on a busy two-core
machine (load 1 to 14), where the rule accepted none of 40 pairs of identical programs. Too few or unusable
starts never lead to a verdict: the answer is `inconclusive` or `continue`, with the reason.

A few starts may look alike by luck, and that luck made most of the false accepts of noisy programs (0.5 to 0.9 % of
equal ones at a noise of 0.07 to 0.24 a start). The slices of a start say what that start cannot be better than: its
*scatter* is the standard error that they show, and the noise of a start is never taken to be less than the scatter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr, stdtrit

from trainflash.errors import Inconclusive, UsageError
from trainflash.schema import Speedup, SpeedVerdict, Spread

LOOKS = (4, 6, 8, 12, 16)  # the only numbers of starts at which the rule may decide; more looks cost false accepts
LEAST_STARTS = LOOKS[0]
LEAST_GAIN = 1.02  # what stays for the life of a process differs by up to 1.8 %, so a smaller gain is inside it
REJECT_GAIN = 1.04  # ends comparisons of equal programs after 6 to 7 starts; rejects a true 1.05 in at most 1.5 %
SD_FLOOR = 0.02  # net noise of one start of a steady single process: four lucky starts must not look certain
QUANTILE = 0.99  # one-sided level of each look, pays for looking up to five times (95 % gave 9.5 % false accepts)
NOISY_SD = 0.05  # above it …
NOISY_QUANTILE = 0.9985  # … this level: at most 1 false accept in 600 up to an sd of 0.24 where the scatter is half of the noise's variance
GUARD_QUANTILE = 0.90  # upper end of the 80 % interval of total wall time must still reach the gain
POWER_QUANTILE = 0.90
FUTILE = 0.005  # chance of an accept below which more starts are a waste; of 20,000 drawn comparisons it cost no accept (bench/RESULTS.md)
WANTED_GAIN = 1.05  # what a user hopes to see; only used to say how many starts that takes
TAIL_HARM = 1 / 1.05  # a tail whose whole interval lies below this got worse
TAIL_STEPS = {0.95: 200, 0.99: 1000}  # steps a side and start before a tail may speak against a candidate; with fewer it describes
OWN_TAIL_STARTS = 5  # the tail of a median over fewer starts still holds stalls of the machine
TRIM = 0.2
WARMUP_LEAST = 5
WARMUP_WINDOW = 10
WARMUP_SLACK = 1.05
FALL_Z = 2.33  # one-sided .01 of Mann and Whitney's U: what says that steps too few for windows still get faster
_MOST_STARTS = 10_000


def quantile(values: Sequence[float], q: float) -> float | None:
    """The `q` quantile (linear interpolation), or None when there are too few values for it (see `steps_for`)."""
    if len(values) < steps_for(q):
        return None
    return float(np.quantile(np.asarray(values, dtype=float), q))


def steps_for(q: float) -> int:
    """Fewest values before a distribution-free 95 % interval of quantile `q` has an upper end: 6, 72, 368 for p50, p95, p99."""
    return math.ceil(math.log(0.025) / math.log(q))


def spread(values_ms: Sequence[float]) -> Spread:
    """Mean, percentiles and maximum of `values_ms`, milliseconds. Raises `Inconclusive` for no values or one that is not finite."""
    values = np.asarray(values_ms, dtype=float)
    if values.size == 0:
        raise Inconclusive("there are no values to summarize", "measure at least one")
    if not np.isfinite(values).all():
        raise Inconclusive("a value to summarize is not a number", "measure again")
    return Spread(
        n=int(values.size),
        mean_ms=float(values.mean()),
        p50_ms=quantile(values, 0.50),
        p95_ms=quantile(values, 0.95),
        p99_ms=quantile(values, 0.99),
        max_ms=float(values.max()),
    )


def standard_error(values: Sequence[float], *, trimmed: bool = False) -> float | None:
    """Standard error of the mean of `values`, or of their trimmed mean (Winsorized variance). None for fewer than 2 values."""
    if len(values) < 2:
        return None
    ordered = np.sort(np.asarray(values, dtype=float))
    cut = int(TRIM * ordered.size) if trimmed else 0
    if cut:
        ordered = np.clip(ordered, ordered[cut], ordered[-cut - 1])
    return float(ordered.std(ddof=1)) / ((1 - 2 * cut / ordered.size) * math.sqrt(ordered.size))


def trimmed_mean(values: Sequence[float]) -> float:
    """The mean without the lowest and the highest 20 % (rounded down) of `values`. Raises `Inconclusive` for no values."""
    if len(values) == 0:
        raise Inconclusive("there are no values to average", "measure at least one")
    cut = int(TRIM * len(values))
    return float(np.mean(np.sort(np.asarray(values, dtype=float))[cut : len(values) - cut]))


def find_warmup(step_ms: Sequence[float]) -> int | None:
    """How many leading steps to drop: at least 5, and on until two windows of 10 steps are as fast as the second half.

    A window is slow when its median exceeds both 1.05 × the median of the second half and the 95th percentile of the
    second half's own 10-step medians. None: no steady state within the first half, or fewer than 40 steps to judge by.
    """
    steps = np.asarray(step_ms, dtype=float)
    if steps.size < 4 * WARMUP_WINDOW or not np.isfinite(steps).all():
        return None
    tail = steps[steps.size // 2 :]
    medians = [float(np.median(tail[i : i + WARMUP_WINDOW])) for i in range(0, tail.size - WARMUP_WINDOW + 1)]
    limit = max(WARMUP_SLACK * float(np.median(tail)), float(np.quantile(medians, 0.95)))
    half_window = WARMUP_WINDOW // 2
    for start in range(WARMUP_LEAST, steps.size // 2 - WARMUP_WINDOW + 1, half_window):
        windows = (steps[start : start + WARMUP_WINDOW], steps[start + WARMUP_WINDOW : start + 2 * WARMUP_WINDOW])
        if all(float(np.median(window)) <= limit for window in windows):
            # the median of a window hides up to half a window of slow steps at its front
            return start if start == WARMUP_LEAST else start + half_window
    return None


def still_falls(step_ms: Sequence[float]) -> bool:
    """Whether the first half of a few steps is surely slower than the second: by Mann and Whitney's U, and by 5 % in the median."""
    steps = np.asarray(step_ms, dtype=float)
    early, late = steps[: steps.size // 2], steps[steps.size // 2 :]
    if not early.size or np.median(early) <= WARMUP_SLACK * np.median(late):
        return False
    slower = float((early[:, None] > late).sum() + (early[:, None] == late).sum() / 2)
    pairs = early.size * late.size
    return slower - pairs / 2 > FALL_Z * math.sqrt(pairs * (steps.size + 1) / 12)


@dataclass(frozen=True)
class Interval:
    """Mean of y over starts with its half-width, in log units; `sd` is after the floor."""

    n: int
    mean: float
    sd: float
    half: float

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half


def interval(ys: Sequence[float], scatters: Sequence[float | None] = (), *, floor: float = SD_FLOOR) -> Interval:
    """The rule's interval of mean y: t at level .99 (.9985 when the sd exceeds .05). Raises `Inconclusive` under two values.

    `scatters` are those of the starts, None where unknown: the sd is not less than their root mean square.
    """
    if len(ys) < 2:
        raise Inconclusive(f"{len(ys)} start(s) have no spread", f"measure at least {LEAST_STARTS} starts")
    values = np.asarray(ys, dtype=float)
    known = [scatter for scatter in scatters if scatter is not None and math.isfinite(scatter)]
    least = math.sqrt(float(np.mean(np.square(known)))) if known else 0.0
    sd = max(float(values.std(ddof=1)), floor, least)
    level = NOISY_QUANTILE if sd > NOISY_SD else QUANTILE
    return Interval(len(ys), float(values.mean()), sd, _t(level, len(ys)) * sd / math.sqrt(len(ys)))


def least_detectable(sd: float, starts: int, *, min_gain: float = LEAST_GAIN) -> float:
    """The smallest true speed-up that `starts` starts with this sd of y show with 90 % power (an approximation at 4)."""
    level = NOISY_QUANTILE if sd > NOISY_SD else QUANTILE
    return math.exp(math.log(min_gain) + (_t(level, starts) + _t(POWER_QUANTILE, starts)) * sd / math.sqrt(starts))


def starts_needed(sd: float, gain: float = WANTED_GAIN, *, min_gain: float = LEAST_GAIN) -> int | None:
    """How many starts show a true `gain` with 90 % power; None when more than 10,000, or when `gain` is not above `min_gain`."""
    if gain <= min_gain or least_detectable(sd, _MOST_STARTS, min_gain=min_gain) > gain:
        return None
    low, high = LEAST_STARTS, _MOST_STARTS
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if least_detectable(sd, middle, min_gain=min_gain) <= gain else (middle + 1, high)
    return low


def decide(
    ys: Sequence[float | None],
    walls: Sequence[float | None],
    scatters: Sequence[float | None] | None = None,
    *,
    min_gain: float = LEAST_GAIN,
    looks: Sequence[int] = LOOKS,
    affordable: int | None = None,
) -> SpeedVerdict:
    """Accept, reject, inconclusive or continue, from one y per start (`ys`), the same by total wall time (`walls`), and its scatter.

    A start whose y or wall is None or not finite does not count. `looks` are the numbers of counted starts at which a
    decision may fall; `affordable` is how many counted starts the budget can reach in all (None: no limit), and the last
    look where it is fewer than the looks' last: it takes the place of the next one, so that there are no more. `min_gain`
    may be raised, never lowered. Raises `UsageError` for a lower one, and for lists of unequal length.
    """
    if not min_gain >= LEAST_GAIN:
        raise UsageError(f"a gain of {min_gain:g} is inside the noise of a process start", f"ask for {LEAST_GAIN} or more")
    if len(ys) != len(walls):
        raise UsageError(f"{len(ys)} starts but {len(walls)} wall times", "pass one of each per start")
    scatters = [None] * len(ys) if scatters is None else scatters
    if len(ys) != len(scatters):
        raise UsageError(f"{len(ys)} starts but {len(scatters)} scatters", "pass one of each per start")
    starts = zip(ys, walls, scatters, strict=True)
    pairs = [(y, w, s) for y, w, s in starts if y is not None and w is not None and math.isfinite(y) and math.isfinite(w)]
    excluded = f" ({len(ys) - len(pairs)} did not count)" if len(pairs) < len(ys) else ""
    n = len(pairs)
    last = looks[-1] if affordable is None else min(looks[-1], affordable) if affordable >= looks[0] else 0
    ahead = [look for look in (*(each for each in looks if each < last), last) if look > n]
    final = not ahead
    if n < LEAST_STARTS:
        reason = f"{n} of at least {LEAST_STARTS} starts{excluded}"
        if final:
            return SpeedVerdict("inconclusive", None, f"{reason}, and the budget ends here", None, None)
        return SpeedVerdict("continue", None, reason, None, None)
    seen = interval([y for y, _, _ in pairs], [s for _, _, s in pairs])
    speedup = Speedup(math.exp(seen.mean), math.exp(seen.low), math.exp(seen.high), n)
    detectable = least_detectable(seen.sd, n, min_gain=min_gain)
    needed = starts_needed(seen.sd, max(WANTED_GAIN, min_gain + 0.03), min_gain=min_gain)

    def verdict(decision: str, reason: str) -> SpeedVerdict:
        return SpeedVerdict(decision, speedup, reason + excluded, detectable, needed)  # type: ignore[arg-type]

    guard = _guard([wall for _, wall, _ in pairs])
    if n in looks or n == last:
        decided = _at_look(seen, speedup, guard, min_gain)
        if decided is not None:
            return verdict(*decided)
    hopeless = _hopeless(seen, needed, affordable, last, min_gain) or _futile(seen, speedup, ahead, min_gain)
    if final or hopeless:
        return verdict("inconclusive", hopeless or _undecided(seen, speedup, guard, min_gain, detectable))
    return verdict("continue", f"{_words(speedup)} after {n} starts, the next look is at {ahead[0]}")


def _at_look(seen: Interval, speedup: Speedup, guard: float, min_gain: float) -> tuple[str, str] | None:
    threshold = math.log(min_gain)
    if seen.low > threshold and guard >= threshold:
        return "accept", f"{_words(speedup)} over {seen.n} starts, clear of {min_gain:g}"
    if seen.high < 0:
        return "reject", f"slower: {_words(speedup)} over {seen.n} starts"
    if seen.high < _reject_below(min_gain):
        return "reject", f"not faster by {math.expm1(_reject_below(min_gain)):.0%} or more: {_words(speedup)} over {seen.n} starts"
    return None


def _reject_below(min_gain: float) -> float:
    """Log of the gain that the whole interval must stay under for a reject; it moves up with `min_gain`."""
    return math.log(min_gain * REJECT_GAIN / LEAST_GAIN)


def _hopeless(seen: Interval, needed: int | None, affordable: int | None, last: int, min_gain: float) -> str | None:
    """Why going on is a waste: this noise asks for more starts than there are, either way. None: it is not."""
    wanted = max(WANTED_GAIN, min_gain + 0.03)
    if affordable is None or seen.mean > math.log(wanted) or (needed is not None and needed <= affordable):
        return None
    level = NOISY_QUANTILE if seen.sd > NOISY_SD else QUANTILE
    if last > seen.n and seen.mean + _t(level, last) * seen.sd / math.sqrt(last) < _reject_below(min_gain):
        return None
    shows = least_detectable(seen.sd, max(affordable, seen.n), min_gain=min_gain)
    need = f"about {needed}" if needed else f"over {_MOST_STARTS}"
    return (
        f"noise {seen.sd:.0%} a start: {max(affordable, seen.n)} starts can show {shows:.2f}, {wanted:.2f} needs {need}; "
        "make the machine quieter or give more time"
    )


def _futile(seen: Interval, speedup: Speedup, ahead: Sequence[int], min_gain: float) -> str | None:
    """Why the starts that are left would not show the gain any more, nor the next look end in a reject. None: they may.

    Predictive power of a sequential test: with mean m and deviation s of n starts, the mean after N has Student's t with n - 1 degrees of
    freedom around m, times s·√((N - n)/(N·n)) (Spiegelhalter and others 1986, with an unknown variance). It is no proof that the program is
    not faster, so it is no reject; ending early can only cost an accept.
    """
    if not ahead:
        return None
    level = NOISY_QUANTILE if seen.sd > NOISY_SD else QUANTILE
    if seen.mean + _t(level, ahead[0]) * seen.sd / math.sqrt(ahead[0]) < _reject_below(min_gain):
        return None
    chance = max(_predicted(seen, look, math.log(min_gain) + _t(level, look) * seen.sd / math.sqrt(look)) for look in ahead)
    if chance >= FUTILE:
        return None
    return f"{_words(speedup)} after {seen.n} starts: {ahead[-1]} would not show {min_gain:g} any more (a chance below {FUTILE:.1%})"


def _predicted(seen: Interval, starts: int, least: float) -> float:
    """The chance that the mean after so many starts exceeds `least`, log units."""
    spread = seen.sd * math.sqrt((starts - seen.n) / (starts * seen.n))
    return 1 - float(stdtr(seen.n - 1, (least - seen.mean) / spread))


def _undecided(seen: Interval, speedup: Speedup, guard: float, min_gain: float, detectable: float) -> str:
    if seen.low > math.log(min_gain) > guard:
        return f"{_words(speedup)} by the net clock, but total wall time does not show it"
    return f"{_words(speedup)} over {seen.n} starts is not clear of {min_gain:g}; this noise can show {detectable:.2f}"


def _guard(walls: Sequence[float]) -> float:
    """Upper end of the 80 % t-interval of y by total wall time, log units."""
    values = np.asarray(walls, dtype=float)
    return float(values.mean()) + _t(GUARD_QUANTILE, len(walls)) * float(values.std(ddof=1)) / math.sqrt(len(walls))


def with_tails(
    verdict: SpeedVerdict, p95_ys: Sequence[float | None], p99_ys: Sequence[float | None], steps: Sequence[int] | None = None
) -> SpeedVerdict:
    """`verdict` with the ratios of the tails; y per start = log(baseline quantile ÷ candidate quantile), None where too few steps.

    An accept becomes a reject when the whole interval of a tail lies below 1/1.05. `steps` a side and start (None: enough): a tail of too
    few has no interval, and forbids nothing.
    """
    if verdict.speedup is None:
        return verdict
    reasons, harmed, values = [], [], {}
    for name, ys, q in (("p95", p95_ys, 0.95), ("p99", p99_ys, 0.99)):
        good = [y for y in ys if y is not None and math.isfinite(y)]
        if len(good) < LEAST_STARTS:
            reasons.append(f"{name}: {len(good)} starts have the {steps_for(q)} steps it takes, {LEAST_STARTS} needed")
            continue
        tail = interval(good)
        values[name] = math.exp(tail.mean)
        if steps is not None and sorted(steps)[len(steps) // 2] < TAIL_STEPS[q]:
            reasons.append(f"{name}: described, not judged: that takes {TAIL_STEPS[q]:,} steps a side and start")
            continue
        values |= {f"{name}_low": math.exp(tail.low), f"{name}_high": math.exp(tail.high)}
        if tail_is_worse(math.exp(tail.high)):
            harmed.append(f"the {name} step got slower: {math.exp(tail.mean):.2f} [{math.exp(tail.low):.2f}, {math.exp(tail.high):.2f}]")
    speedup = replace(verdict.speedup, tail_reason="; ".join(reasons), **values)
    if harmed and verdict.decision == "accept":
        return replace(verdict, decision="reject", speedup=speedup, reason=f"{verdict.reason}, but {' and '.join(harmed)}")
    return replace(verdict, speedup=speedup)


Profile = tuple[int, Sequence[float]]  # index of the first step, and the milliseconds of that step and the steps after it


def own_tail(baseline: Sequence[Profile], candidate: Sequence[Profile], q: float) -> float | None:
    """The programs' own slow steps: ratio of the `q` quantiles of the medians over starts at each step index.

    Above 1: the candidate's are faster. It knows what comes again at the same index (an evaluation, a long batch) and forgets stalls of
    the machine. None with fewer than 5 starts, or too few indices that all of them have.
    """
    if len(baseline) < OWN_TAIL_STARTS or len(candidate) < OWN_TAIL_STARTS:
        return None
    sides = (*baseline, *candidate)
    first = max(index for index, _ in sides)
    last = min(index + len(times) for index, times in sides)
    if last - first < steps_for(q):
        return None
    tails = []
    for profiles in (baseline, candidate):
        aligned = [np.asarray(times[first - index : last - index], dtype=float) for index, times in profiles]
        tails.append(float(np.quantile(np.median(aligned, axis=0), q)))
    return tails[0] / tails[1] if min(tails) > 0 else None


def tail_is_worse(high: float | None) -> bool:
    """True when the upper end of a tail's interval lies below 1/1.05: the slow steps certainly got slower."""
    return high is not None and high < TAIL_HARM


def t_quantile(level: float, freedom: float) -> float:
    """The `level` quantile of Student's t with so many degrees of freedom."""
    return float(stdtrit(freedom, level))


def _t(level: float, n: int) -> float:
    return float(stdtrit(n - 1, level))  # quantile of Student's t


def _words(speedup: Speedup) -> str:
    digits = 2 if speedup.mean > 1.2 else 3
    return f"{speedup.mean:.{digits}f} times as fast [{speedup.ci_low:.{digits}f}, {speedup.ci_high:.{digits}f}]"
