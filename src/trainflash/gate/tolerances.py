"""How much worse a figure may get before the gate speaks: the defaults, and where an owner changes them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from trainflash.errors import UsageError


@dataclass
class ToleranceConfig:
    """What is tolerated; per cent of the baseline, but points for a probe's accuracy and loss a step for the slope.

    The defaults are the gate's contract. On a shared machine they hold for the paired mode; see `trainflash gate compare --help`.
    """

    throughput_drop_pct: float = 5.0
    step_time_increase_pct: float = 5.0
    memory_increase_pct: float = 10.0
    ppl_increase_pct: float = 1.5
    probe_drop_abs: float = 2.0
    loss_slope_threshold: float = 0.001

    def check(self) -> ToleranceConfig:
        """Itself. Raises `UsageError` naming the tolerance that is negative, no number, or lets everything pass."""
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
                raise UsageError(f"{each.name} is {value!r}", "a tolerance is a number from 0 on")
        for name in ("throughput_drop_pct", "probe_drop_abs"):
            if getattr(self, name) >= 100:
                raise UsageError(f"{name} is {getattr(self, name):g}: nothing could ever fail", "give less than 100")
        return self


@dataclass(frozen=True)
class Rule:
    """What one figure is held to. `better`: which direction is good; `unit` is that of the tolerance."""

    figure: str
    gate: Literal["performance", "quality", "stability"]
    tolerance: str
    action: Literal["fail", "warn"]
    better: Literal["lower", "higher"]
    unit: Literal["percent", "points", "a step"] = "percent"


RULES = (
    Rule("tokens_per_sec_p50", "performance", "throughput_drop_pct", "fail", "higher"),
    Rule("samples_per_sec_p50", "performance", "throughput_drop_pct", "fail", "higher"),
    Rule("step_time_p50", "performance", "step_time_increase_pct", "fail", "lower"),
    Rule("memory_peak", "performance", "memory_increase_pct", "warn", "lower"),
    Rule("perplexity", "quality", "ppl_increase_pct", "fail", "lower"),
    Rule("probe", "quality", "probe_drop_abs", "fail", "higher", "points"),
    Rule("metric", "quality", "ppl_increase_pct", "fail", "lower"),  # which direction is better, the metric says itself
    Rule("loss_slope", "stability", "loss_slope_threshold", "fail", "lower", "a step"),
)


def rule(figure: str) -> Rule:
    """The rule of one figure, such as `step_time_p50`."""
    return next(each for each in RULES if each.figure == figure)


def from_table(table: Mapping[str, Any], source: str, base: ToleranceConfig | None = None) -> ToleranceConfig:
    """Tolerances by name, over those of `base`. Raises `UsageError` naming `source` and the name that is unknown or cannot be."""
    known = {each.name for each in fields(ToleranceConfig)}
    values: dict[str, float] = {}
    for name, value in table.items():
        if name not in known:
            raise UsageError(f"{source}: there is no tolerance {name!r}", f"tolerances: {', '.join(sorted(known))}")
        try:
            values[name] = float("" if isinstance(value, bool) else value)
        except (TypeError, ValueError):
            raise UsageError(f"{source}: {name} = {value!r} is no number", "a tolerance is a number from 0 on") from None
    try:
        return replace(base or ToleranceConfig(), **values).check()
    except UsageError as bad:
        raise UsageError(f"{source}: {bad.message}", bad.mend) from None


def from_words(words: tuple[str, ...], base: ToleranceConfig) -> ToleranceConfig:
    """`NAME=VALUE` each, over `base`."""
    table = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign:
            raise UsageError(f"{word!r} is no tolerance", "write NAME=VALUE, such as throughput_drop_pct=3")
        table[name.strip()] = value
    return from_table(table, "--tolerance", base)
