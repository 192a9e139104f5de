"""What a rule hands to the ranking, and how its parts are built."""

from __future__ import annotations

from dataclasses import dataclass

from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Ceiling, Evidence, Finding

MOST_SHARE = 0.99  # a bound of more than 100x says nothing


@dataclass(frozen=True)
class Claim:
    """A finding and what it is ranked by. `inside` names the kind whose time it is a part of: it stands beside that, never against it."""

    finding: Finding
    weight: float
    inside: str | None = None


def bound(share: float) -> Ceiling:
    """The speed-up if `share` of the wall time were gone, 1 ÷ (1 − share): an upper bound, because costs overlap once they are moved."""
    return Ceiling(speedup=round(1.0 / (1.0 - min(max(share, 0.0), MOST_SHARE)), 3), how="bound")


def severity(share: float, limits: Thresholds) -> str:
    """high, medium or low by `share`."""
    if share >= limits.high:
        return "high"
    return "medium" if share >= limits.dominant else "low"


def percent(name: str, share: float) -> Evidence:
    """A share, shown in percent."""
    return Evidence(name, round(100 * share, 1), "%")


def milliseconds(name: str, value: float) -> Evidence:
    """A duration in milliseconds."""
    return Evidence(name, round(value, 3), "ms")


def count(name: str, value: float, unit: str = "") -> Evidence:
    """A plain number."""
    return Evidence(name, round(value, 2), unit)


def shown(share: float) -> str:
    """`share` as text for a sentence: "41 %"."""
    return f"{100 * share:.0f} %"
