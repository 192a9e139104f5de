"""Two summaries side by side, normalised by the work that they did; and whether they may be compared at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Literal

from trainflash.errors import UsageError
from trainflash.schema.profile_changes import (
    ComparedSide,
    Delta,
    FamilyDelta,
    OpDelta,
    ProfileComparison,
    ProvenanceCheck,
    ShareDelta,
    StepClassDelta,
    StepTimeDelta,
)
from trainflash.schema.profile_ops import MOST_OP_TOTALS
from trainflash.schema.profiles import ProfileSummary

TOP = 10
PARTS = ("compute", "communication", "copy", "host", "stall", "other")
NOTABLE = 0.02  # own: two profiles of one program differ by a hundredth or two; smaller changes are not put into words
UNLIKE = 0.2  # own: variants of one model share more of their calls, other models less
LEAST_OPERATORS = 10  # of a list of operators that is compared
LEAST_STEPS = 3
STOPPED = 1.3  # own: times the median of the steps before
LEAST_OF_OP = 0.001  # of a step: an op that changed by less is neither regressed nor improved


def compare(before: ProfileSummary, after: ProfileSummary, *, strict: bool = False, top_k: int = TOP) -> ProfileComparison:
    """How `after` differs from `before`.

    Raises `UsageError` for a readability run, for different breakdown modes, and under `strict` for two summaries of one trace or of unlike
    workloads.
    """
    for side, summary in (("before", before), ("after", after)):
        if summary.trace_provenance.readability_run:
            reasons = ", ".join(summary.trace_provenance.readability_run)
            raise UsageError(
                f"{side} is a run for readable names ({reasons}): its times cannot be compared", "profile again without those settings"
            )
    modes = before.time_breakdown.duration_basis, after.time_breakdown.duration_basis
    if modes[0] != modes[1]:
        raise UsageError(
            f"the breakdowns are made in different modes: {modes[0]} and {modes[1]}", "summarize both with the same --breakdown-mode"
        )
    checked = check_provenance(before, after)
    if strict:
        _enforce(checked)
    by_step = _steps(before) > 0 and _steps(after) > 0
    units = _units(before, by_step), _units(after, by_step)
    ops = _ops(before, after, units, by_step)
    step_time, idle, kept = _step_time(before, after), _idle(before, after, units), _findings(before, after)
    shares = tuple(_share(part, _part(before, part), _part(after, part), units) for part in PARTS)
    comparison = ProfileComparison(
        before=side_of(before),
        after=side_of(after),
        provenance=checked,
        changed=before.digest != after.digest,
        said=(),
        normalized_by="step" if by_step else "rank",
        ops_normalized_by="step" if by_step else "call",
        step_time=step_time,
        step_classes=_classes(before, after),
        time_breakdown_share_delta=shares,
        idle_causes=idle,
        semantic_families=_families(before, after, units),
        regressed_ops=tuple(op for op in ops if (op.per_unit_us.change or 0) > 0)[:top_k],
        improved_ops=tuple(sorted((op for op in ops if (op.per_unit_us.change or 0) < 0), key=lambda op: (op.per_unit_us.change, op.name)))[
            :top_k
        ],
        findings_gone=kept["gone"],
        findings_new=kept["new"],
        findings_kept=kept["kept"],
    )
    return _with_words(comparison, before, after)


def side_of(summary: ProfileSummary) -> ComparedSide:
    """What a comparison or a history keeps of a summary's identity."""
    return ComparedSide(
        digest=summary.digest,
        trace_sha256=summary.trace_provenance.trace_sha256,
        source_path=summary.source_path,
        run_id=summary.run_metadata.run_id,
        artifact_ref=summary.run_metadata.artifact_ref,
        steps=_steps(summary),
    )


def check_provenance(before: ProfileSummary, after: ProfileSummary) -> ProvenanceCheck:
    """What the two have in common, and what should be equal and is not."""
    old, new = before.trace_provenance, after.trace_provenance
    shared, differences, notes = [], [], []
    for name in sorted(set(old.workload) | set(new.workload)):
        left, right = old.workload.get(name), new.workload.get(name)
        if left == right:
            shared += [f"{name}: {left}"] if name != "ranks" else []
        elif left is not None and right is not None:
            differences.append(f"{name}: {left} and {right}")
    files = sorted(set(old.source_file_hints) & set(new.source_file_hints))
    shared += [f"source: {', '.join(files)}"] if files else []
    names = {op.canonical_name for op in before.hot_ops} & {op.canonical_name for op in after.hot_ops}
    shared += [f"{len(names)} of the costliest ops"] if names else []
    alike = _alike(before, after)
    if alike is not None and alike < UNLIKE:
        differences.append(f"model: only {alike * 100:.0f} % of the calls of operators are ones that both make")
    if before.run_metadata.run_path and before.run_metadata.run_path == after.run_metadata.run_path:
        shared.append(f"run: {before.run_metadata.run_path}")
    if before.source_format != after.source_format:
        differences.append(f"format: {before.source_format} and {after.source_format}")
    if old.xla_flags != new.xla_flags:
        notes.append(f"XLA_FLAGS: {old.xla_flags} and {new.xla_flags}")
    for name in sorted(set(old.versions) & set(new.versions)):
        if old.versions[name] != new.versions[name]:
            notes.append(f"{name}: {old.versions[name]} and {new.versions[name]}")
    for side, summary in (("before", before), ("after", after)):
        if summary.trace_overview.suspected_truncation:
            notes.append(f"{side} may be truncated")
        stop = _stop(summary)
        if stop is not None:
            notes.append(f"{side}: step {stop[0]}, its last, took {stop[1]:.1f} times the others: the profiler stopped in it")
    same = old.trace_sha256 is not None and old.trace_sha256 == new.trace_sha256
    return ProvenanceCheck(same, tuple(shared), tuple(differences), tuple(notes))


def _alike(before: ProfileSummary, after: ProfileSummary) -> float | None:
    """The share of the host's operator calls that both make; None where one side lists too few to tell.

    Calls are counted, not their time: what runs faster is still called. Each name is worth its share of its side's calls.
    """
    old, new = ({op.canonical_name: op.count for op in summary.host_ops} for summary in (before, after))
    if min(len(old), len(new)) < LEAST_OPERATORS:
        return None
    whole = sum(old.values()), sum(new.values())
    return sum(min(count / whole[0], new[name] / whole[1]) for name, count in old.items() if name in new)


def _stop(summary: ProfileSummary) -> tuple[int, float] | None:
    """(number, times the median of the others) of a last step that is longer than all before it; None where it is not."""
    steps = [step for step in summary.step_time.steps if not step.warmup]
    whole = len(summary.step_time.steps) == summary.step_time.all_steps.count
    if len(steps) < LEAST_STEPS or not whole:
        return None
    *others, last = (step.duration_us for step in steps)
    usual = median(others)
    longer = last >= STOPPED * usual and last > STOPPED * usual + (max(others) - usual)
    return (steps[-1].number, last / usual) if longer and usual else None


def _enforce(checked: ProvenanceCheck) -> None:
    if checked.same_trace:
        raise UsageError("before and after are one and the same trace", "compare two runs, or leave out --strict-provenance")
    if checked.differences:
        raise UsageError(
            f"before and after are unlike: {'; '.join(checked.differences)}", "compare like with like, or leave out --strict-provenance"
        )
    if not checked.shared:
        raise UsageError(
            "nothing shows that before and after are the same workload", "compare two runs of one program, or leave out --strict-provenance"
        )


def delta(before: float | None, after: float | None) -> Delta:
    """Both figures with their difference and quotient."""
    if before is None or after is None:
        return Delta(before, after, None, None)
    return Delta(before, after, round(after - before, 9), round(after / before, 6) if before else None)


def _steps(summary: ProfileSummary) -> int:
    return summary.step_time.steady_state_steps.count


def _units(summary: ProfileSummary, by_step: bool) -> int:
    """Over how much work sums are spread: steps of all ranks, or ranks."""
    ranks = max(len(summary.ranks), 1)
    return _steps(summary) * ranks if by_step else ranks


def _each(total: float | None, units: int) -> float | None:
    return None if total is None else round(total / units, 6)


def _part(summary: ProfileSummary, part: str) -> tuple[float, float]:
    found = getattr(summary.time_breakdown, part)
    return found.total_duration, found.share_of_total


def _share(name: str, before: tuple[float, float], after: tuple[float, float], units: tuple[int, int]) -> ShareDelta:
    return ShareDelta(name, delta(before[1], after[1]), delta(_each(before[0], units[0]), _each(after[0], units[1])))


def _step_time(before: ProfileSummary, after: ProfileSummary) -> StepTimeDelta:
    old, new = before.step_time.steady_state_steps, after.step_time.steady_state_steps
    speedup = round(old.mean / new.mean, 6) if old.mean and new.mean else None
    return StepTimeDelta(delta(old.mean, new.mean), delta(old.median, new.median), delta(old.p90, new.p90), speedup)


def _classes(before: ProfileSummary, after: ProfileSummary) -> tuple[StepClassDelta, ...]:
    old, new = ({each.name: each for each in summary.step_time.classes} for summary in (before, after))

    def both(name: str, figure: Callable[[Any], float | None]) -> Delta:
        return delta(figure(old[name]) if name in old else None, figure(new[name]) if name in new else None)

    return tuple(
        StepClassDelta(name, both(name, lambda each: each.duration_stats.median), both(name, lambda each: each.fraction_of_steady))
        for name in ("light", "heavy")
        if name in old or name in new
    )


def _idle(before: ProfileSummary, after: ProfileSummary, units: tuple[int, int]) -> tuple[ShareDelta, ...]:
    if before.idle is None or after.idle is None:
        return ()
    old, new = ({each.cause: (each.total_us, each.share_of_window) for each in idle.causes} for idle in (before.idle, after.idle))
    rows = [_share(cause, old.get(cause, (0.0, 0.0)), new.get(cause, (0.0, 0.0)), units) for cause in sorted(set(old) | set(new))]
    return tuple(sorted(rows, key=lambda row: (-abs(row.share.change or 0.0), row.part)))


def _families(before: ProfileSummary, after: ProfileSummary, units: tuple[int, int]) -> tuple[FamilyDelta, ...]:
    old, new = ({each.family: each for each in summary.semantic_families} for summary in (before, after))
    rows = []
    for family in sorted(set(old) | set(new)):
        left, right = old.get(family), new.get(family)
        rows.append(
            FamilyDelta(
                family=family,
                per_unit_us=delta(
                    _each(left.exclusive_duration if left else 0.0, units[0]), _each(right.exclusive_duration if right else 0.0, units[1])
                ),
                share_of_total=delta(left.share_of_total if left else 0.0, right.share_of_total if right else 0.0),
                avg_us=delta(left.avg_exclusive_duration if left else None, right.avg_exclusive_duration if right else None),
                time_per_flop_proxy=delta(left.time_per_flop_proxy if left else None, right.time_per_flop_proxy if right else None),
            )
        )
    return tuple(sorted(rows, key=lambda row: (-abs(row.per_unit_us.change or 0.0), row.family)))


@dataclass(frozen=True)
class _Ops:
    """The ops of one side: (microseconds, calls) by canonical name; `unlisted_us`: what one that it does not list takes at most."""

    totals: dict[str, tuple[float, int]]
    unlisted_us: float


def _ops(before: ProfileSummary, after: ProfileSummary, units: tuple[int, int], by_step: bool) -> list[OpDelta]:
    """Largest growth first, above `LEAST_OF_OP`. Without steps by the mean call: nothing tells how much work two windows hold.

    An op that one side does not list changed by what the other side says, less what it may take unlisted.
    """
    old, new = _totals(before), _totals(after)
    least = LEAST_OF_OP * (_each(before.time_breakdown.window_us, units[0]) or 0.0)
    rows = []
    for name in sorted(set(old.totals) | set(new.totals)):
        sides = [side.totals.get(name, (side.unlisted_us, 0)) for side in (old, new)]
        spread = units if by_step else (max(sides[0][1], 1), max(sides[1][1], 1))
        times = delta(*(_each(time, unit) for (time, _), unit in zip(sides, spread, strict=True)))
        counts = delta(*(_each(count, unit) for (_, count), unit in zip(sides, units, strict=True)))
        one_sided = name not in old.totals or name not in new.totals
        if one_sided and _gained(times) != (name not in old.totals):
            continue  # it may stand on the other side, unlisted
        weight = 1.0 if by_step else max(sides[0][1] / units[0], sides[1][1] / units[1])
        if abs(times.change or 0.0) * weight >= least:
            rows.append(OpDelta(name, times, counts))
    return sorted(rows, key=lambda row: (-(row.per_unit_us.change or 0.0), row.name))


def _gained(times: Delta) -> bool:
    return (times.change or 0.0) > 0


def _totals(summary: ProfileSummary) -> _Ops:
    if summary.op_totals:
        rows = {op.canonical_name: (op.exclusive_duration, op.count) for op in summary.op_totals}
        return _Ops(rows, 0.0 if len(rows) < MOST_OP_TOTALS else summary.op_totals[-1].exclusive_duration)
    rows = {}
    for op in summary.hot_ops:  # of a summary that lists no totals
        time, count = rows.get(op.canonical_name, (0.0, 0))
        rows[op.canonical_name] = (time + op.exclusive_duration, count + op.count)
    complete = sum(op.share_of_total or 0.0 for op in summary.hot_ops) > 0.99999
    return _Ops(rows, 0.0 if complete or not rows else max(op.exclusive_duration for op in summary.hot_ops))


def _findings(before: ProfileSummary, after: ProfileSummary) -> dict[Literal["gone", "new", "kept"], tuple[str, ...]]:
    old = [each.candidate_id for each in before.optimization_candidates]
    new = [each.candidate_id for each in after.optimization_candidates]
    return {
        "gone": tuple(name for name in old if name not in new),
        "new": tuple(name for name in new if name not in old),
        "kept": tuple(name for name in new if name in old),
    }


def _with_words(comparison: ProfileComparison, before: ProfileSummary, after: ProfileSummary) -> ProfileComparison:
    said = []
    if not comparison.changed:
        return replace(comparison, said=("no change: both summaries are equal",))
    windows = [summary.time_breakdown.window_us / max(len(summary.ranks), 1) / 1000 for summary in (before, after)]
    if comparison.normalized_by == "rank" and abs(windows[1] - windows[0]) >= NOTABLE * windows[0]:
        said.append(
            f"the windows differ, {windows[0]:.1f} ms and {windows[1]:.1f} ms, and no steps say how much work they hold: "
            "compare shares and times a call"
        )
    step = comparison.step_time.mean_us
    if step.before and step.after and step.ratio is not None:
        if abs(step.ratio - 1) >= NOTABLE:
            way = "shorter" if step.ratio < 1 else "longer"
            said.append(
                f"the mean step takes {step.after / 1000:.1f} ms instead of {step.before / 1000:.1f} ms: "
                f"{abs(1 - step.ratio) * 100:.1f} % {way}, by one profile a side"
            )
        else:
            said.append(f"the mean step takes as long as before: {step.after / 1000:.1f} ms and {step.before / 1000:.1f} ms")
    if comparison.provenance.differences:
        kinds = ", ".join(each.partition(":")[0] for each in comparison.provenance.differences)
        said.append(f"before and after differ in {kinds}: a step of the one is not the work of a step of the other")
    for row in comparison.idle_causes:
        said += _cause_words(row)
    titles = {each.candidate_id: each.title for each in (*before.optimization_candidates, *after.optimization_candidates)}
    said += [f"gone: {titles[name]}" for name in comparison.findings_gone]
    said += [f"new: {titles[name]}" for name in comparison.findings_new]
    return replace(comparison, said=tuple(said))


def _cause_words(row: ShareDelta) -> list[str]:
    before, after, change = row.share.before, row.share.after, row.share.change
    if before is None or after is None or change is None or abs(change) < NOTABLE:
        return []
    verb = "fell" if change < 0 else "grew"
    return [f"idle time by {row.part} {verb} from {before * 100:.1f} % to {after * 100:.1f} % of the window"]
