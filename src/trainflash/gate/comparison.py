"""A measured document against its baseline: which figures got worse, beyond which tolerance, and how sure that is.

A figure fails when its whole interval lies beyond the tolerance, passes when the whole interval lies within, and is inconclusive between.
What was measured before and is missing now never passes. Documents of another machine profile are never compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from trainflash.errors import UsageError
from trainflash.gate import baselines, noise, slower
from trainflash.gate.tolerances import Rule, ToleranceConfig, rule
from trainflash.schema import GateEval, GateMetrics
from trainflash.schema.gate_changes import ComparedRun, CompareResult, GateCheck, GateResult

SAME_WORK = 0.005  # tokens or samples a step that differ by less (a smaller last batch) are the same work
_EDGE = 1e-9  # of rounding: exactly the tolerance is within it
_WORST: tuple[GateResult, ...] = ("fail", "inconclusive", "warn", "pass")


class CompareBaseline:
    """Compares files by `tolerances`; each file is a metrics.json, an eval.json or a baseline."""

    def __init__(self, tolerances: ToleranceConfig | None = None) -> None:
        self.tolerances = (tolerances or ToleranceConfig()).check()

    def compare(self, current: str | Path, baseline: str | Path) -> CompareResult:
        """May what `current` measured pass, beside `baseline`? Raises `UsageError` for a file that cannot be read or was edited."""
        measured, before = baselines.load(Path(current)), baselines.load(Path(baseline))
        if measured.kind != before.kind:
            raise UsageError(f"{baseline} holds {before.kind}, {current} holds {measured.kind}", "name two files of one kind")
        return compare(measured, before, self.tolerances)

    def update_baseline(self, current: str | Path, dest: str | Path) -> None:
        """Make `current` the baseline in `dest`, a file or the folder. Calling it is the decision; the command asks who may."""
        baselines.write(baselines.load(Path(current)), Path(dest), by="library call")


def compare(
    current: baselines.Loaded, baseline: baselines.Loaded, tolerances: ToleranceConfig, moved: slower.Moved = slower.unmoved
) -> CompareResult:
    """The comparison of two documents of one kind; `moved` tells where a line of the baseline's commit stands now."""
    ours, theirs = current.document, baseline.document
    result = CompareResult(
        result="inconclusive",
        mode="stored",
        compared=True,
        machine_profile=ours.machine_profile,
        baseline=_side(baseline),
        current=_side(current),
        checks=(),
    )
    if ours.machine_profile != theirs.machine_profile:
        return another_profile(result)
    unlike = _unlike(theirs, ours)
    if unlike:
        return replace(result, reasons=tuple(unlike), mend="measure as the baseline was, or make it anew: trainflash gate update-baseline")
    if isinstance(ours, GateMetrics) and isinstance(theirs, GateMetrics):
        checks = of_metrics(theirs, ours, tolerances)
        lost = any(check.result == "fail" and check.gate == "performance" for check in checks)
        slow = slower.parts(theirs, ours, moved) if lost else ()
        return judged(replace(result, slower=slow), checks)
    assert isinstance(ours, GateEval) and isinstance(theirs, GateEval)
    return judged(result, of_eval(theirs, ours, tolerances))


def no_baseline(current: baselines.Loaded, folder: Path) -> CompareResult:
    """The answer where the machine profile has no baseline yet."""
    profile = current.document.machine_profile
    others = [name for name in baselines.known_profiles(folder, current.kind) if name != profile]
    path = baselines.path_of(folder, profile, current.kind)
    has = f"; there are baselines of {', '.join(others[:3])}, which are never compared with this machine" if others else ""
    return CompareResult(
        result="inconclusive",
        mode="stored",
        compared=False,
        machine_profile=profile,
        baseline=ComparedRun(None, None, str(path), None),
        current=_side(current),
        checks=(),
        reasons=(f"no {current.kind} baseline for machine profile {profile}{has}",),
        mend=f"make it on the main branch: trainflash gate update-baseline --{current.kind} {current.source}",
    )


def another_profile(result: CompareResult) -> CompareResult:
    """The answer for two machine profiles."""
    here, there = result.current.machine_profile, result.baseline.machine_profile
    return replace(
        result,
        compared=False,
        reasons=(f"the baseline is of machine profile {there}, this is {here}: they are never compared",),
        mend="compare on that machine, or make a baseline for this one: trainflash gate update-baseline",
    )


def judged(result: CompareResult, checks: Sequence[GateCheck]) -> CompareResult:
    """`result` with its checks and what follows: a fail, what is uncertain, a warning, else a pass. No check at all is no pass."""
    decisive = [check for check in checks if check.result != "skipped"]
    if not decisive:
        return replace(result, checks=tuple(checks), reasons=(*result.reasons, "nothing was measured on both sides"), result="inconclusive")
    came_to = _worst(check.result for check in decisive if check.result != "skipped")
    reasons = tuple(check.said for place in _WORST[:3] for check in decisive if check.result == place)
    return replace(result, checks=tuple(checks), result=came_to, reasons=(*result.reasons, *reasons))


def together(results: Sequence[CompareResult]) -> CompareResult:
    """Several comparisons of one change as one: the worst decides."""
    first = results[0]
    return replace(
        first,
        result=_worst(each.result for each in results),
        compared=all(each.compared for each in results),
        checks=tuple(check for each in results for check in each.checks),
        reasons=tuple(reason for place in _WORST for each in results if each.result == place for reason in each.reasons),
        slower=tuple(part for each in results for part in each.slower),
        notes=tuple(note for each in results for note in each.notes),
        mend="; ".join(dict.fromkeys(each.mend for each in results if each.mend)),
        spent_s=sum(each.spent_s or 0.0 for each in results) or None,
    )


def permitted(result: CompareResult) -> CompareResult:
    """`result` of one document, where the owner lets a machine without a baseline go on: what was not compared is a warning then.

    Never for several `together`: a loss that one of them shows would be let through with what the other lacks.
    """
    return result if result.compared else replace(result, result="warn")


def of_metrics(baseline: GateMetrics, current: GateMetrics, tolerances: ToleranceConfig) -> list[GateCheck]:
    """Throughput, step time, memory and loss slope."""
    ours, theirs = noise.of_side(current), noise.of_side(baseline)
    half, rests_on = noise.half_width(theirs, ours), noise.words(theirs, ours)
    other_work = _other_work(baseline, current)
    by_tokens, by_samples = baseline.tokens_per_sec_p50 is not None, baseline.samples_per_sec_p50 is not None
    checks = [
        _relative(rule("tokens_per_sec_p50"), baseline.tokens_per_sec_p50, current.tokens_per_sec_p50, tolerances, half, rests_on),
        skipped(rule("samples_per_sec_p50"), baseline.samples_per_sec_p50, current.samples_per_sec_p50, tolerances, "tokens stand for it")
        if by_tokens
        else _relative(rule("samples_per_sec_p50"), baseline.samples_per_sec_p50, current.samples_per_sec_p50, tolerances, half, rests_on),
        skipped(rule("step_time_p50"), baseline.step_time_p50_ms, current.step_time_p50_ms, tolerances, other_work)
        if other_work and (by_tokens or by_samples)
        else _relative(rule("step_time_p50"), baseline.step_time_p50_ms, current.step_time_p50_ms, tolerances, half, rests_on),
    ]
    if baseline.memory_of is not None and current.memory_of is not None and baseline.memory_of != current.memory_of:
        why = f"the peak is of {baseline.memory_of} memory before and of {current.memory_of} memory now"
        checks.append(skipped(rule("memory_peak"), None, None, tolerances, why))
    else:
        checks.append(_relative(rule("memory_peak"), baseline.memory_peak_bytes, current.memory_peak_bytes, tolerances, None, ""))
    return [*checks, loss_slope(baseline.loss_slope, current, tolerances)]


def of_eval(baseline: GateEval, current: GateEval, tolerances: ToleranceConfig) -> list[GateCheck]:
    """Perplexity, each probe's accuracy, each metric of the owner's. They are deterministic: no interval."""
    scored = baseline.perplexity is not None or current.perplexity is not None
    checks = [_relative(rule("perplexity"), baseline.perplexity, current.perplexity, tolerances, None, "")] if scored else []
    before, now = {probe.name: probe for probe in baseline.probes}, {probe.name: probe for probe in current.probes}
    for name in dict.fromkeys((*before, *now)):
        old, new = before.get(name), now.get(name)
        if old and new and old.total != new.total:
            why = f"probe {name} had {old.total} items, has {new.total}: they do not compare"
            checks.append(_missing(rule("probe"), f"probe {name}", old.accuracy, new.accuracy, tolerances, why))
            continue
        checks.append(_drop(f"probe {name}", old.accuracy if old else None, new.accuracy if new else None, tolerances))
    own_before, own_now = {each.text: each for each in baseline.metrics}, {each.text: each for each in current.metrics}
    for text in dict.fromkeys((*own_before, *own_now)):
        old_metric, new_metric = own_before.get(text), own_now.get(text)
        better = (old_metric or new_metric).better  # type: ignore[union-attr]
        held = replace(rule("metric"), better=better)
        values = (each.value if each else None for each in (old_metric, new_metric))
        checks.append(_relative(held, *values, tolerances, None, "", name=f"metric {text}"))
    return checks


def loss_slope(baseline: float | None, current: GateMetrics, tolerances: ToleranceConfig) -> GateCheck:
    """Stability: a loss that rises by more than the threshold a step, and more than its own scatter explains.

    A rise within the scatter passes where the baseline's is no smaller by more than the threshold; else it is inconclusive.
    """
    held = rule("loss_slope")
    slope, limit = current.loss_slope, tolerances.loss_slope_threshold
    if slope is None:
        return _absent(held, held.figure, baseline, None, tolerances)
    half = noise.slope_half_width(noise.slopes(current))
    low, high = (None, None) if half is None else (slope - half, slope + half)
    said = f"the loss changes by {slope:+.3g} a step, tolerated is +{limit:g}"
    result = "pass" if slope <= limit + _EDGE else "fail"
    if result == "fail" and low is not None and low <= limit:
        as_before = baseline is not None and slope - baseline <= limit + _EDGE
        result = "pass" if as_before else "inconclusive"
        said += f"; its scatter leaves between {low:+.3g} and {high:+.3g}{'' if as_before else ': more steps show more'}"
    return GateCheck(held.figure, held.gate, held.action, result, held.unit, baseline, slope, slope, low, high, limit, said)  # type: ignore[arg-type]


def bounded(
    held: Rule, name: str, baseline: float, current: float, worse: float, low: float | None, high: float | None, limit: float, rests_on: str
) -> GateCheck:
    """One figure against its limit; `low` and `high` are the interval of `worse` (None: exact)."""
    least, most = (worse, worse) if low is None or high is None else (low, high)
    beyond, within = least > limit + _EDGE, most <= limit + _EDGE
    if held.action == "warn":
        result = "warn" if beyond or (not within and worse > limit) else "pass"
    else:
        result = "fail" if beyond else "pass" if within else "inconclusive"
    unit = " points" if held.unit == "points" else " %"
    change = f"{abs(worse):.1f}{unit} {'worse' if worse > 0 else 'better'}" if abs(worse) >= 0.05 else "as before"
    seen = "" if low is None or high is None else f" [{low:+.1f}, {high:+.1f}]"
    said = f"{name} is {change}{seen}: {_figure(baseline)} → {_figure(current)}, tolerated {limit:g}{unit}"
    if rests_on and result != "pass":
        said += f"; {rests_on}"
    return GateCheck(name, held.gate, held.action, result, held.unit, baseline, current, worse, low, high, limit, said)  # type: ignore[arg-type]


def skipped(held: Rule, baseline: float | None, current: float | None, tolerances: ToleranceConfig, why: str) -> GateCheck:
    """A figure that another stands for, or that neither side has."""
    limit = getattr(tolerances, held.tolerance)
    return GateCheck(held.figure, held.gate, held.action, "skipped", held.unit, baseline, current, None, None, None, limit, why)


def worse_by(better: str, log_ratio: float) -> float:
    """Per cent that a figure got worse by, from log(current ÷ baseline)."""
    return 100 * (math.expm1(log_ratio) if better == "lower" else -math.expm1(log_ratio))


def _relative(
    held: Rule,
    baseline: float | None,
    current: float | None,
    tolerances: ToleranceConfig,
    half: float | None,
    rests_on: str,
    *,
    name: str = "",
) -> GateCheck:
    name = name or held.figure
    if baseline is None or current is None:
        return _absent(held, name, baseline, current, tolerances)
    limit = getattr(tolerances, held.tolerance)
    if half is None:
        change = current - baseline
        if baseline == 0 and change:
            return _missing(held, name, baseline, current, tolerances, f"{name} was 0 and is {_figure(current)}: no ratio")
        worse = 100 * (change / abs(baseline) if baseline else 0.0) * (1 if held.better == "lower" else -1)
        return bounded(held, name, baseline, current, worse, None, None, limit, rests_on)
    ratio = math.log(current / baseline)
    ends = sorted(worse_by(held.better, ratio + side * half) for side in (-1, 1))
    return bounded(held, name, baseline, current, worse_by(held.better, ratio), *ends, limit, rests_on)


def _drop(name: str, baseline: float | None, current: float | None, tolerances: ToleranceConfig) -> GateCheck:
    held = rule("probe")
    if baseline is None or current is None:
        return _absent(held, name, baseline, current, tolerances)
    return bounded(held, name, baseline, current, baseline - current, None, None, tolerances.probe_drop_abs, "")


def _absent(held: Rule, name: str, baseline: float | None, current: float | None, tolerances: ToleranceConfig) -> GateCheck:
    """A figure that a side lacks. What the baseline had and the change has not could hide a loss."""
    if baseline is not None:
        return _missing(held, name, baseline, None, tolerances, f"{name} was measured before and is missing now")
    why = "not measured" if current is None else "new: the baseline does not have it"
    return replace(skipped(held, baseline, current, tolerances, f"{name}: {why}"), name=name)


def _missing(held: Rule, name: str, baseline: float | None, current: float | None, tolerances: ToleranceConfig, why: str) -> GateCheck:
    result = "warn" if held.action == "warn" else "inconclusive"
    return replace(skipped(held, baseline, current, tolerances, why), name=name, result=result)


def _other_work(baseline: GateMetrics, current: GateMetrics) -> str:
    """Why a step of one side is not a step of the other; "" where it is."""
    for what, before, now in (
        ("tokens", baseline.tokens_per_step, current.tokens_per_step),
        ("samples", baseline.samples_per_step, current.samples_per_step),
    ):
        if before and now and abs(now / before - 1) > SAME_WORK:
            return f"a step has {now:g} {what} instead of {before:g}: throughput decides"
    return ""


def _unlike(baseline: GateMetrics | GateEval, current: GateMetrics | GateEval) -> list[str]:
    """What must be equal and is not."""
    names: Iterable[str]
    if isinstance(current, GateMetrics):
        names = ("source", "mode", "world_size", "command")
    else:
        own = ("model",) if current.metrics or baseline.metrics else ()  # of an owner's evaluation it is the command
        names = ("seed", "temperature", "shard_sha256", "tokenizer", "max_tokens", *own)
    pairs = ((name, getattr(baseline, name), getattr(current, name)) for name in names)
    return [f"{name} was {_shown(before)}, is {_shown(now)}: unlike runs are not compared" for name, before, now in pairs if before != now]


def _shown(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else "not set" if value is None else str(value)


def _side(loaded: baselines.Loaded) -> ComparedRun:
    document = loaded.document
    repeats = len(document.repeats) if isinstance(document, GateMetrics) else None
    return ComparedRun(document.commit, document.machine_profile, loaded.source, repeats)


def _worst(results: Iterable[str]) -> GateResult:
    seen = set(results)
    return next(place for place in _WORST if place in seen)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
