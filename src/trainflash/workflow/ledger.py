"""The ledger: what each source of changes earned in a sandbox, what finding it out cost, and when that is paid back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import get_args

from trainflash import knobs
from trainflash.schema import Experiment
from trainflash.schema.authors import Attempt, Earned, Source

BY_HAND = "patch"
# Kinds of edits that change how the program works rather than what it is told: the others set, switch or take away.
TRANSFORMS = frozenset({"ModelStatement", "ForwardBlock", "Memoize", "Seldom", "AskedFirst", "PadToLongest", "Hoist"})


def source_of(knob: str) -> Source:
    """Where a change came from, by the name that its experiment has for it."""
    if knob == "author":
        return "author"
    if knob == BY_HAND:
        return "by hand"
    known = knobs.by_name().get(knob)
    return "transforms" if known and type(known.edits[0]).__name__ in TRANSFORMS else "settings"


def of(experiments: Sequence[Experiment], attempts: Sequence[Attempt]) -> tuple[Earned, ...]:
    """One line for each source that was tried, in the order in which they are."""
    return tuple(
        _line(source, [one for one in experiments if source_of(one.knob) == source], attempts if source == "author" else ())
        for source in get_args(Source)
        if (source == "author" and attempts) or any(source_of(one.knob) == source for one in experiments)
    )


def _line(source: Source, mine: Sequence[Experiment], attempts: Sequence[Attempt]) -> Earned:
    accepted = [one for one in mine if one.decision == "accepted" and one.verdict and one.verdict.speedup]
    speedup = math.prod(one.verdict.speedup.mean for one in accepted if one.verdict and one.verdict.speedup) if accepted else None
    measuring = sum(one.verdict.spent_s for one in mine if one.verdict) / 60
    writing = sum(each.minutes for each in attempts)
    costs = [each.cost_usd for each in attempts if each.cost_usd is not None]
    return Earned(
        source=source,
        tried=len(mine),
        accepted=len(accepted),
        speedup=speedup,
        measuring_minutes=round(measuring, 2),
        writing_minutes=round(writing, 2),
        attempts=len(attempts),
        cost_usd=round(sum(costs), 4) if costs else None,
        paid_back_hours=paid_back(measuring + writing, speedup),
    )


def paid_back(minutes: float, speedup: float | None) -> float | None:
    """Hours of the training as it was after which `minutes` are won back; None where nothing is won."""
    return round(minutes / 60 / (1 - 1 / speedup), 3) if speedup is not None and speedup > 1 else None
