"""The three promises of the gate, held against what this machine measured: documents that repeat, traces that open, a gate that stops."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from trainflash.errors import TrainFlashError
from trainflash.gate import baselines, comparison
from trainflash.gate.tolerances import ToleranceConfig
from trainflash.schema import GateMetrics, from_plain, to_plain
from trainflash.schema.gate_changes import GateValidation, ValidationCheck

RUNS = 3  # fewer show no variance
QUIET_RUNS = 12  # so many runs a side have an interval narrower than the tolerance
MOST_VARIANCE = 0.03  # of the p50 of repeated runs: the gate's contract


def validate(
    measured: GateMetrics, evaluated: tuple[Mapping[str, Any], Mapping[str, Any]], tolerances: ToleranceConfig, traced: Callable[[], int]
) -> GateValidation:
    """`evaluated`: two evaluations of one model; `traced` counts the events of the traces, or raises an error of ours."""
    checks = (_stable(measured, evaluated), _repeats(measured), _opens(traced), *_stops(measured, tolerances))
    held = {check.ok for check in checks}
    return GateValidation("fail" if False in held else "inconclusive" if None in held else "pass", checks)  # type: ignore[arg-type]


def _stable(measured: GateMetrics, evaluated: tuple[Mapping[str, Any], Mapping[str, Any]]) -> ValidationCheck:
    again = from_plain(GateMetrics, to_plain(measured), "metrics.json") == measured
    same = evaluated[0] == evaluated[1]
    said = f"{GateMetrics.SCHEMA} reads back {'equal' if again else 'changed'}; two evaluations are {'equal' if same else 'not equal'}"
    return ValidationCheck("1 documents are stable", again and same, said)


def _repeats(measured: GateMetrics) -> ValidationCheck:
    medians = [statistics.median(repeat.step_ms) for repeat in measured.repeats]
    name = f"1 p50 of repeated runs within {MOST_VARIANCE:.0%}"
    if len(medians) < RUNS:
        return ValidationCheck(name, None, f"{len(medians)} runs, {RUNS} are needed")
    middle = statistics.median(medians)
    spread = max(abs(median / middle - 1) for median in medians)
    said = f"{len(medians)} runs, p50 of {middle:.3g} ms, at most {spread:.1%} from their median"
    if spread > MOST_VARIANCE:
        said += "; this machine is too unquiet for stored baselines: use --against REF, which compares in pairs"
    return ValidationCheck(name, spread <= MOST_VARIANCE, said)


def _opens(traced: Callable[[], int]) -> ValidationCheck:
    name = "2 traces open"
    try:
        events = traced()
    except TrainFlashError as bad:
        return ValidationCheck(name, False, bad.message)
    return ValidationCheck(name, events > 0, f"the trace reader finds {events:,} events")


def _stops(measured: GateMetrics, tolerances: ToleranceConfig) -> tuple[ValidationCheck, ...]:
    """What was measured here against itself, as it is and made slower: on steps without noise, so that the decision alone is tried."""
    p50 = measured.step_time_p50_ms
    if p50 is None:
        return (ValidationCheck("3 the gate stops a loss and lets through what is equal", None, "too few steps for a p50"),)
    one = replace(measured.repeats[0], step_ms=(p50,) * 10, losses=())
    quiet = replace(measured, repeats=(one,) * QUIET_RUNS, loss_slope=None)
    slower = 3 * max(tolerances.throughput_drop_pct, tolerances.step_time_increase_pct, 2.0)
    found = []
    for name, factor, wanted in (("lets through what is equal", 1.0, ("pass", "warn")), ("stops a loss", 1 + slower / 100, ("fail",))):
        after = baselines.Loaded("metrics", _scaled(quiet, factor), "as measured")
        result = comparison.compare(after, baselines.Loaded("metrics", quiet, "as measured"), tolerances)
        said = f"the same run made {factor - 1:.0%} slower: {result.result}" if factor > 1 else f"the same run: {result.result}"
        found.append(ValidationCheck(f"3 the gate {name}", result.result in wanted, said))
    other = replace(quiet, machine_profile="another machine")
    compared = comparison.compare(baselines.Loaded("metrics", other, ""), baselines.Loaded("metrics", quiet, ""), tolerances).compared
    said = f"the same run under another profile: {'compared' if compared else 'not compared'}"
    return (*found, ValidationCheck("3 another machine profile is never compared", not compared, said))


def _scaled(metrics: GateMetrics, factor: float) -> GateMetrics:
    longer = ("step_time_mean_ms", "step_time_p50_ms", "step_time_p90_ms")
    shorter = ("tokens_per_sec_p50", "samples_per_sec_p50")
    values = {name: value * factor for name in longer if (value := getattr(metrics, name)) is not None}
    values |= {name: value / factor for name in shorter if (value := getattr(metrics, name)) is not None}
    return replace(metrics, **values)
