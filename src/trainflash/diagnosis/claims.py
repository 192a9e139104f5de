"""What a rule hands to the ranking, and how its parts are built."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Ceiling, Evidence, Finding, Kind, Location, Spread

MOST_SHARE = 0.99  # a bound of more than 100x says nothing
BoundBy = Literal["input", "io", "host", "device", "communication"]


@dataclass(frozen=True)
class Claim:
    """A finding and what it is ranked by.

    `phases` are those that its time lies in, () for any. `inside` names the kind whose time it is a part of: it stands beside that,
    never against it. One that does not `lead` is worth listing, but is no bottleneck by itself, however it ranks among others.
    """

    finding: Finding
    weight: float
    phases: tuple[str, ...] = ()
    inside: str | None = None
    leads: bool = True


def claim(
    kind: Kind,
    phase: str,
    bound_by: BoundBy,
    share: float,
    limits: Thresholds,
    *,
    summary: str,
    evidence: Iterable[Evidence],
    location: Location | None = None,
    knobs: tuple[str, ...] = (),
    weight: float | None = None,
    at_most: float | None = None,
    phases: tuple[str, ...] | None = None,
    inside: str | None = None,
    leads: bool = True,
) -> Claim:
    """A claim of `share` of the wall time, ranked by `weight` (default: the share).

    `at_most` is what the ceiling and the severity are taken from where `share` is a low estimate. `phases`: default the one it is shown in.
    """
    share = min(max(share, 0.0), 1.0)
    most = share if at_most is None else at_most
    finding = Finding(
        kind=kind,
        phase=phase,
        bound_by=bound_by,
        share=share,
        severity=severity(most, limits),
        summary=summary,
        evidence=tuple(evidence),
        location=location,
        ceiling=bound(most),
        knobs=knobs,
        phases=phases if phases is not None and len(phases) > 1 else (),
    )
    return Claim(finding, share if weight is None else weight, (phase,) if phases is None else phases, inside, leads)


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


def megabytes(name: str, value: float) -> Evidence:
    """A size given in bytes."""
    return Evidence(name, round(value / 1e6, 1), "MB")


def mean_of(name: str, spread: Spread | None) -> list[Evidence]:
    """The mean of a spread, nothing where it was not measured."""
    return [] if spread is None else [milliseconds(name, spread.mean_ms)]


def shown(share: float) -> str:
    """`share` as text for a sentence: "41 %"."""
    return f"{100 * share:.0f} %"


def at(location: Location | None) -> str:
    """ " at FILE:LINE" for a sentence, nothing where no line is known."""
    return f" at {location}" if location is not None else ""
