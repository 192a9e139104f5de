"""What the owner is shown before approving, and what `explain` tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rich.console import Group, RenderableType
from rich.syntax import Syntax
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
    """One finding, knob or pattern, or the list of them all, field by field."""
    kinds = {"kind": _of_finding, "values": _of_knob, "before": _of_pattern}
    rows = next((rows_of(told) for field, rows_of in kinds.items() if field in told), None) or _names(told)
    grid = Table.grid(padding=(0, 2))
    for name, value in rows:
        if value is not None:
            grid.add_row(Text(name, style="bold"), value)
    return grid


_MAY_CHANGE = {"same": "nothing: it trains the same", "close": "rounding alone"}
Rows = list[tuple[str, RenderableType | None]]


def _of_finding(told: Mapping[str, Any]) -> Rows:
    fixes = [f"{fix['what']}{_named(fix['knob'] or fix['pattern'])} — {fix['changes']}" for fix in told["fixes"]]
    return [
        ("Finding", ink(told["kind"])),
        ("Symptom", ink(told["symptom"])),
        ("Cause", ink(told["cause"])),
        ("Evidence", ink(told["evidence"])),
        ("Fixes", Group(*bullets(fixes))),
        ("Knobs", ink(", ".join(told["knobs"]) or "none: it needs a patch, or a person")),
        ("Patterns", ink(", ".join(told["patterns"])) if told["patterns"] else None),
        ("Source", _address(told["source"])),
    ]


def _of_knob(told: Mapping[str, Any]) -> Rows:
    risks = [f"{risk['risk']}: {risk['because']}" for risk in told["risk_when"]]
    return [
        ("Knob", ink(f"{told['name']}: {told['title']}")),
        ("Answers", ink(", ".join(told["answers"]))),
        ("What", ink(told["what"])),
        ("Values", ink(", ".join(str(value) for value in told["values"]))),
        ("Expected", ink(told["effect"]["expected"])),
        ("Changes", ink(_MAY_CHANGE.get(told["risk"], f"{told['risk']}: needs your agreement by that name"))),
        ("In some runs", Group(*bullets(risks)) if risks else None),
        ("Refused when", Group(*bullets([condition["otherwise"] for condition in told["requires"]])) if told["requires"] else None),
        ("Check", Group(*bullets(told["check"]))),
        ("Undo", ink(told["undo"])),
        ("Source", Group(*(_address(source) for source in told["effect"]["source"]))),
    ]


def _of_pattern(told: Mapping[str, Any]) -> Rows:
    return [
        ("Pattern", ink(f"{told['name']}: {told['title']}")),
        ("Answers", ink(", ".join(told["answers"]))),
        ("Symptom", ink(told["symptom"])),
        ("Before", Syntax(told["before"].rstrip(), "python", background_color="default")),
        ("After", Syntax(told["after"].rstrip(), "python", background_color="default")),
        ("Keeps", ink(told["keeps"])),
        ("Traps", Group(*bullets(told["traps"]))),
        ("Source", Group(*(_address(source) for source in told["source"])) if told["source"] else None),
    ]


def _names(told: Mapping[str, Any]) -> Rows:
    return [
        (title, Group(*bullets([f"{row['name']} — {row['what']}" for row in told[title.lower()]])))
        for title in ("Findings", "Knobs", "Patterns")
    ]


def _named(knob: str) -> str:
    return f" ({knob})" if knob else ""


def _address(source: str) -> Text:
    """An address stays whole, so that it can be opened from the terminal."""
    return Text(source, overflow="fold")
