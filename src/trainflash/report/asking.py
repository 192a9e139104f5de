"""What the owner is shown before approving, and what `explain` tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from trainflash.report import figures
from trainflash.report.ink import bullets, ink
from trainflash.report.outcomes import verdict
from trainflash.report.terminal import diff
from trainflash.schema import Experiment


class Proposed(Protocol):
    """A write-back that could be made now."""

    experiments: Sequence[Experiment]
    diff: str
    digest: str
    approvable: bool
    reason: str
    run_as: str


def proposal(made: Proposed) -> RenderableType:
    """What each experiment does and how it was judged, the diff, and the digest that approves exactly it."""
    parts: list[RenderableType] = []
    for experiment in made.experiments:
        parts.append(Text(f"{experiment.n}. {figures.words(experiment.knob)}", style="bold"))
        parts.append(ink(experiment.why))
        if experiment.verdict:
            parts.append(verdict(experiment.verdict))
    parts += [Text(), diff(made.diff), Text()] if made.diff else [Text()]
    if made.run_as and made.approvable:
        parts.append(ink(f"From then on start the training as: {made.run_as}"))
    parts.append(ink(f"digest {made.digest}" if made.approvable else f"cannot be approved: {made.reason}"))
    return Group(*parts)


def explanation(told: Mapping[str, Any]) -> RenderableType:
    """One finding or knob, field by field, in the order of its document."""
    grid = Table.grid(padding=(0, 2))
    for name, value in told.items():
        if name in {"schema", "status", "edits"} or value in (None, [], (), ""):
            continue
        grid.add_row(Text(figures.words(name).capitalize(), style="bold"), _value(value))
    return grid


def _plain(value: Any) -> str:
    return ", ".join(str(part) for part in value) if isinstance(value, (list, tuple)) else str(value)


def _value(value: Any) -> RenderableType:
    if isinstance(value, Mapping):
        return ink("; ".join(f"{figures.words(key)}: {_plain(part)}" for key, part in value.items() if part not in (None, "", [])))
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], Mapping):
        return Group(*bullets([" — ".join(str(part) for part in row.values() if part) for row in value]))
    if isinstance(value, (list, tuple)):
        return ink(", ".join(str(part) for part in value))
    return ink(str(value))
