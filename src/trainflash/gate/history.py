"""Many small losses: figures over time on one machine profile, and the commits at which their level changed.

Each loss of a series may lie within its tolerance and within the noise; their sum does not. The series is cut into segments of one level
(PELT with a squared-error cost, by the library `ruptures`), and the last level is held against the best one so far.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from trainflash.errors import UsageError
from trainflash.gate.tolerances import ToleranceConfig
from trainflash.schema import GateEval, GateMetrics, record_lines
from trainflash.schema.gate_changes import (
    ChangePoint,
    CompareResult,
    GateRecord,
    GateSeries,
    GateTrend,
    HistoryPoint,
)

FILE = "bench/history.jsonl"  # in the project
LEAST_POINTS = 5  # fewer have no noise that could be told from a change
LEAST_SEGMENT = 2  # one commit alone is an outlier, not a level
NOISE_FLOOR = 1e-4  # relative; figures of an evaluation repeat exactly
PENALTY = 5.0  # × variance × log n; 2 is BIC's, and the noise of a short history is itself uncertain
_MAD = 1.4826  # of a normal distribution: sd ÷ median absolute deviation
_KNOWN = {  # figure: (which direction is better, its tolerance)
    "tokens_per_sec_p50": ("higher", "throughput_drop_pct"),
    "samples_per_sec_p50": ("higher", "throughput_drop_pct"),
    "step_time_p50_ms": ("lower", "step_time_increase_pct"),
    "memory_peak_bytes": ("lower", "memory_increase_pct"),
    "perplexity": ("lower", "ppl_increase_pct"),
}


def record(
    metrics: GateMetrics | None, evaluation: GateEval | None, result: CompareResult | None, *, at_utc: str, label: str | None = None
) -> GateRecord:
    """What one commit measured, as a line of the history. Raises `UsageError` where there is nothing to record."""
    document = metrics or evaluation
    if document is None:
        raise UsageError("there is nothing to record", "give --metrics FILE, --eval FILE or both")
    seen = {name: getattr(part, name, None) for part in (metrics, evaluation) if part is not None for name in _KNOWN if hasattr(part, name)}
    for probe in evaluation.probes if evaluation else ():
        seen[f"probe {probe.name}"] = probe.accuracy
    kept = {name: float(value) for name, value in seen.items() if value is not None}
    return GateRecord(at_utc, document.commit, document.machine_profile, result.result if result else None, kept, label)


def append(path: Path, line: GateRecord) -> None:
    """Add one line; two writers at once both get their line in."""
    record_lines.append(path, line)


def trend(path: Path, machine_profile: str | None, tolerances: ToleranceConfig) -> GateTrend:
    """The history of one machine profile (None: that of the last record). Raises `UsageError` when there is none."""
    records, unreadable = _read(path)
    counted = Counter(each.machine_profile for each in records)
    profile = machine_profile or records[-1].machine_profile
    mine = [each for each in records if each.machine_profile == profile]
    if not mine:
        raise UsageError(f"{path}: has no record of machine profile {profile}", f"it has {', '.join(sorted(counted))}")
    names = list(dict.fromkeys(name for each in mine for name in each.figures))
    found = [_series(name, [each for each in mine if name in each.figures], tolerances) for name in names]
    judged = tuple(each for each in found if each.result != "inconclusive")
    result = "warn" if any(each.result == "warn" for each in found) else "pass" if judged else "inconclusive"
    lost = [each.said for each in found if each.result == "warn"]
    rest = [each.said for each in found if each.result != "warn"]
    said = tuple(lost or [f"no loss beyond tolerance over {len(mine)} records" if judged else rest[0]])
    others = {name: count for name, count in sorted(counted.items()) if name != profile}
    return GateTrend(str(path), profile, len(mine), tuple(found), result, said, unreadable, others)  # type: ignore[arg-type]


def change_points(values: Sequence[float], sd: float) -> list[int]:
    """Indices at which a new level begins; `sd` is the noise of one value."""
    import ruptures

    signal = np.asarray(values, dtype=float).reshape(-1, 1)
    found = ruptures.Pelt(model="l2", min_size=LEAST_SEGMENT, jump=1).fit(signal)
    return found.predict(pen=PENALTY * sd**2 * math.log(len(values)))[:-1]


def noise(values: Sequence[float]) -> float:
    """Standard deviation of one value, from the differences of neighbours: the median forgets the few changes of level."""
    steps = [later - earlier for earlier, later in itertools.pairwise(values)]
    middle = statistics.median(steps)
    return _MAD * statistics.median(abs(step - middle) for step in steps) / math.sqrt(2)


def _series(name: str, records: Sequence[GateRecord], tolerances: ToleranceConfig) -> GateSeries:
    better, tolerance = _KNOWN.get(name, ("higher", "probe_drop_abs"))
    limit = getattr(tolerances, tolerance)
    raw = [each.figures[name] for each in records]
    by_ratio = name in _KNOWN and all(value > 0 for value in raw)
    values = [math.log(value) for value in raw] if by_ratio else raw
    sd, cuts = None, []
    if len(values) >= LEAST_POINTS:
        sd = max(noise(values), NOISE_FLOOR * (1.0 if by_ratio else 100.0))
        cuts = change_points(values, sd)
    bounds = list(zip([0, *cuts], [*cuts, len(values)], strict=True))
    levels = [statistics.fmean(values[start:end]) for start, end in bounds]

    def worse(before: float, after: float) -> float:
        """Per cent; points where a ratio has no meaning."""
        change = 100 * math.expm1(after - before) if by_ratio else after - before
        return change if better == "lower" else -change

    best = min(levels) if better == "lower" else max(levels)
    lost = worse(best, levels[-1])
    shown = [math.exp(level) if by_ratio else level for level in levels]
    points = tuple(
        HistoryPoint(each.at_utc, each.commit, each.label, raw[place], shown[number], each.result)
        for number, (start, end) in enumerate(bounds)
        for place, each in enumerate(records[start:end], start)
    )
    changes = tuple(
        ChangePoint(start, records[start].commit, records[start].label, *shown[number : number + 2], worse(*levels[number : number + 2]))
        for number, (start, _) in enumerate(bounds[1:])
    )
    result = "inconclusive" if sd is None else "warn" if lost > limit else "pass"
    unit = " %" if by_ratio else " points"
    said = _said(name, len(values), changes, lost, unit, None if sd is None else limit)
    noise_pct = None if sd is None else 100 * math.expm1(sd) if by_ratio else sd
    return GateSeries(name, better, points, changes, noise_pct, lost, limit, result, said)  # type: ignore[arg-type]


def _said(name: str, count: int, changes: Sequence[ChangePoint], lost: float, unit: str, limit: float | None) -> str:
    if limit is None:
        return f"{name}: {count} records, {LEAST_POINTS} are needed before a change can be told from noise"
    if lost <= limit:
        levels = f"{len(changes)} change points" if len(changes) != 1 else "1 change point"
        return f"{name}: {levels}, {max(lost, 0.0):.1f}{unit} worse than its best, tolerated {limit:g}{unit}"
    bad = [each for each in changes if each.worse_pct > 0]
    named = ((each.label or (each.commit or f"record {each.index + 1}")[:12], each.worse_pct) for each in bad[:6])
    places = ", ".join(f"{name} ({worse_pct:+.1f}{unit})" for name, worse_pct in named)
    more = f" and {len(bad) - 6} more" if len(bad) > 6 else ""
    return f"{name}: {lost:.1f}{unit} worse than its best, tolerated {limit:g}{unit}; lost at {places}{more}"


def _read(path: Path) -> tuple[list[GateRecord], int]:
    return record_lines.read(path, GateRecord, what="record", written_by="trainflash gate history --append", sound=_finite)


def _finite(record: GateRecord) -> bool:
    return all(math.isfinite(value) for value in record.figures.values())
