"""Is the new profile still good enough? pass, warn or fail; and what came of all such questions so far, one JSON line each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trainflash.schema import record_lines
from trainflash.schema.profile_changes import (
    Counted,
    ProfileAssessment,
    ProfileComparison,
    ProfileHistory,
    TrackLimits,
    TrackStatus,
    TrendPoint,
)

LEAST_STEPS_FOR_P90 = 10  # own: the 90th percentile of fewer steps is little else than their maximum
MOST_MESSAGES = 10


def assess(comparison: ProfileComparison, limits: TrackLimits, *, label: str | None, recorded_at_utc: str) -> ProfileAssessment:
    """Fail when a step got slower beyond the limits, warn when a share grew beyond them; inconclusive without step times."""
    step = comparison.step_time
    few = min(comparison.before.steps, comparison.after.steps) < LEAST_STEPS_FOR_P90
    shares = {row.part: row.share.change for row in comparison.time_breakdown_share_delta}
    metrics = {
        "steady_state_median_before_us": step.median_us.before,
        "steady_state_median_after_us": step.median_us.after,
        "steady_state_median_regression_pct": _percent(step.median_us.ratio),
        "steady_state_p90_regression_pct": None if few else _percent(step.p90_us.ratio),
        "communication_share_delta": shares.get("communication"),
        "stall_share_delta": shares.get("stall"),
    }
    failures = [
        *_beyond(
            "the median step is slower by {:.2f} %", metrics["steady_state_median_regression_pct"], limits.max_step_median_regression_pct
        ),
        *_beyond("the p90 step is slower by {:.2f} %", metrics["steady_state_p90_regression_pct"], limits.max_step_p90_regression_pct),
    ]
    warnings = [
        *_beyond("the share of communication grew by {:.4f}", shares.get("communication"), limits.max_communication_share_regression_abs),
        *_beyond("the share of stalls grew by {:.4f}", shares.get("stall"), limits.max_stall_share_regression_abs),
    ]
    result: TrackStatus = "fail" if failures else "warn" if warnings else "pass"
    if step.median_us.ratio is None:
        result = "inconclusive"
        warnings.append("no step times on both sides: the trace has no step marks")
    return ProfileAssessment(
        recorded_at_utc, label, result, tuple(failures), tuple(warnings), metrics, limits, comparison.before, comparison.after, comparison
    )


def append(path: Path, assessment: ProfileAssessment) -> None:
    """Add one line to the history; two writers at once both get their line in."""
    record_lines.append(path, replace(assessment, comparison=None))


def history(path: Path, tail: int | None = None) -> ProfileHistory:
    """The history in `path`, its last `tail` records in full. Raises `UsageError` when it is missing or holds no record."""
    records, unreadable = record_lines.read(
        path, ProfileAssessment, what="record of a tracked profile", written_by="trainflash profile track --history FILE"
    )
    records.sort(key=lambda each: each.recorded_at_utc)
    points = tuple(_point(record) for record in records)
    return ProfileHistory(
        history_path=str(path),
        num_records=len(records),
        status_counts=dict(sorted(Counter(record.result for record in records).items())),
        top_failures=_counted([message for record in records for message in record.failures]),
        top_warnings=_counted([message for record in records for message in record.warnings]),
        trend=points[-tail:] if tail else points,
        unreadable_lines=unreadable,
        step_median_change_pct=_trend(points),
    )


def _beyond(words: str, value: float | None, limit: float) -> list[str]:
    return [f"{words.format(value)}, more than {limit:g}"] if value is not None and value > limit else []


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else round((ratio - 1) * 100, 4)


def _counted(messages: Sequence[str]) -> tuple[Counted, ...]:
    counted = Counter(messages)
    return tuple(Counted(message, counted[message]) for message in sorted(counted, key=lambda each: (-counted[each], each))[:MOST_MESSAGES])


def _point(record: ProfileAssessment) -> TrendPoint:
    return TrendPoint(
        recorded_at_utc=record.recorded_at_utc,
        label=record.label,
        result=record.result,
        step_median_before_us=record.metrics.get("steady_state_median_before_us"),
        step_median_after_us=record.metrics.get("steady_state_median_after_us"),
        step_median_regression_pct=record.metrics.get("steady_state_median_regression_pct"),
    )


def _trend(points: Sequence[TrendPoint]) -> float | None:
    first = next((point.step_median_before_us for point in points if point.step_median_before_us), None)
    last = next((point.step_median_after_us for point in reversed(points) if point.step_median_after_us), None)
    return None if not first or not last else round((last / first - 1) * 100, 4)
