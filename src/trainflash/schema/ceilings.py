"""What measured what-if replays said about one diagnosis: `ceilings.v1`. History: v1, first version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trainflash.schema.runs import Location
from trainflash.schema.summaries import WhatIf


@dataclass(frozen=True)
class Unmeasured:
    """A finding whose ceiling stays a bound, and why."""

    kind: str
    location: Location | None
    reason: str


@dataclass(frozen=True)
class Ceilings:
    """`ceilings.json`, beside the diagnosis that it belongs to."""

    SCHEMA: ClassVar[str] = "ceilings.v1"
    run: str  # of the diagnosis
    what_if: tuple[WhatIf, ...]
    unmeasured: tuple[Unmeasured, ...] = ()
    runs: tuple[str, ...] = ()  # throw-away runs that it took
    spent_s: float = 0.0
