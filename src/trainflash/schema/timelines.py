"""How the steps of one run went, one after the other: `timeline.v1`. History: v1, first version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trainflash.schema.summaries import Spread


@dataclass(frozen=True)
class Timeline:
    """`timeline.json`: all steps of rank 0 in order, joined to at most a few hundred bins of neighbouring steps.

    Bin i holds the steps from `first_step[i]` up to the next bin's; `phases[name][i]` is the mean milliseconds of that phase in a step of
    it (the phases of a bin add up to its mean step), `slowest_ms[i]` its slowest step. `step_ms` covers the steady steps alone.
    """

    SCHEMA: ClassVar[str] = "timeline.v1"
    run: str
    steps: int
    warmup_steps: int
    first_step: tuple[int, ...]
    phases: dict[str, tuple[float, ...]]
    slowest_ms: tuple[float, ...]
    step_ms: Spread
