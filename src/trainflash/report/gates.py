"""What the gate says: for the terminal, as Markdown for a pull request's summary, as GitHub annotations, and the history as one page."""

from __future__ import annotations

import re

from markupsafe import Markup
from rich.console import Group, RenderableType

from trainflash.report import figures, gate_pictures, ink
from trainflash.report.profile_sheets import Block, Sheet
from trainflash.report.rendering import template
from trainflash.report.tune import MARKS, Tone
from trainflash.schema.gate_changes import ChangePoint, CompareResult, GateCheck, GateTrend, GateValidation, SlowerPart

HEADLINES = {
    "pass": "The gate is open: nothing got worse beyond its tolerance",
    "warn": "The gate is open, with a warning",
    "fail": "The gate is closed: it got worse beyond its tolerance",
    "inconclusive": "The gate is closed: the evidence is not enough",
}
WORDS: dict[str, Tone] = {"pass": "good", "warn": "unsure", "fail": "bad", "inconclusive": "unsure", "skipped": "unsure"}
_SPARKS = "▁▂▃▄▅▆▇█"
_NAME_WIDTH = 19
_COLUMNS = ("Check", "before", "now", "worse by", "interval", "tolerated", "result")


def terminal(result: CompareResult) -> RenderableType:
    """One comparison for a person."""
    parts: list[RenderableType] = [
        ink.ink(f"{MARKS[WORDS[result.result]]} {HEADLINES[result.result]}", f"bold {ink.STYLES[WORDS[result.result]]}"),
        ink.ink(_compared(result)),
    ]
    if result.checks:
        made = ink.table(*_COLUMNS, right=_COLUMNS[1:6])
        made.columns[-1].no_wrap = True
        made.columns[0].min_width = min(_NAME_WIDTH, max(len(check.name) for check in result.checks))
        for check in _shown(result):
            made.add_row(*(ink.ink(cell) for cell in _cells(check)[:-1]), _result(check.result))
        parts.append(ink.explained(made))
    parts += ink.bullets(result.reasons, "!")
    parts += ink.bullets([_slower(part) for part in result.slower])
    parts += ink.bullets(result.notes)
    if result.mend and result.result != "pass":
        parts.append(ink.unbroken(result.mend, "bold"))
    return Group(*parts)


def markdown(result: CompareResult) -> str:
    """The same for a pull request's summary; texts of others cannot break out of their cells."""
    blocks = [f"## {MARKS[WORDS[result.result]]} {HEADLINES[result.result]}", _text(_compared(result))]
    if result.reasons:
        blocks.append("\n".join(f"- {_text(reason)}" for reason in result.reasons))
    if result.slower:
        blocks.append("\n".join(["**What takes longer**", "", *(f"- {_text(_slower(part))}" for part in result.slower)]))
    if result.checks:
        rows = [_COLUMNS, ("---", *["---:"] * 5, "---"), *(tuple(_text(cell) for cell in _cells(check)) for check in _shown(result))]
        blocks.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
    if result.mend and result.result != "pass":
        blocks.append(_text(result.mend))
    if result.notes:
        blocks.append("\n".join(f"- {_text(note)}" for note in result.notes))
    return "\n\n".join(blocks) + "\n"


def annotations(result: CompareResult) -> list[str]:
    """Workflow commands that GitHub shows at the line that got slower, else on the run."""
    level = {"pass": "notice", "warn": "warning", "fail": "error", "inconclusive": "error"}[result.result]
    if not result.compared and result.result == "warn":
        level = "notice"
    said = "; ".join(result.reasons) or HEADLINES[result.result]
    lines = [_command(level, said, "Performance gate")]
    for part in result.slower:
        if part.location is not None:
            place = {"file": part.location.file, "line": str(part.location.line)}
            lines.append(_command(level, _slower(part), "Slower than before", place))
    return lines


def trend_annotations(found: GateTrend) -> list[str]:
    """A warning for each figure that was lost over time."""
    return [_command("warning", series.said, "Lost over time") for series in found.series if series.result == "warn"]


def validation(found: GateValidation) -> RenderableType:
    """The three promises."""
    made = ink.table("Promise", "", "evidence")
    for check in found.checks:
        word = "not tried" if check.ok is None else "holds" if check.ok else "broken"
        tone = "unsure" if check.ok is None else "good" if check.ok else "bad"
        made.add_row(ink.ink(check.name), ink.ink(f"{MARKS[tone]} {word}", ink.STYLES[tone]), ink.ink(check.evidence))
    return made


def trend(found: GateTrend) -> RenderableType:
    """The history for the terminal: each figure as a line of blocks, its change points, what was lost."""
    made = ink.table("Figure", "first", "last", "over time", "noise", "result", right=("first", "last", "noise"))
    for series in found.series:
        points = series.points
        made.add_row(
            ink.ink(series.figure),
            ink.ink(figures.number(points[0].level)),
            ink.ink(figures.number(points[-1].level)),
            ink.ink(_spark([point.value for point in points])),
            ink.ink(figures.DASH if series.noise_pct is None else f"{series.noise_pct:.1f} %"),
            _result(series.result),
        )
    return Group(ink.explained(made), *ink.bullets(found.said))


def trend_markdown(found: GateTrend) -> str:
    """The history for a summary."""
    rows = [("Figure", "first", "last", "result"), ("---", "---:", "---:", "---")]
    for each in found.series:
        first, last = (figures.number(point.level) for point in (each.points[0], each.points[-1]))
        rows.append((_text(each.figure), first, last, each.result))
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    said = "\n".join(f"- {_text(line)}" for line in found.said)
    return "\n\n".join([f"## History on {_text(found.machine_profile)}", table, said]) + "\n"


def trend_page(found: GateTrend) -> str:
    """One page that loads nothing, with a picture of each figure."""
    blocks = tuple(
        Block(
            title=series.figure,
            columns=("changed at", "before", "after", "worse by"),
            rows=tuple(_change(each) for each in series.changes),
            notes=(series.said,),
            chart=series.figure,
        )
        for series in found.series
    )
    tone = WORDS[found.result]
    facts = (f"machine profile {found.machine_profile}", f"{found.records} records in {found.path}")
    sheet = Sheet(title="Gate history", headline=found.said[0], tone=tone, facts=facts, warnings=(), blocks=blocks)
    charts = {series.figure: Markup("".join(_sized(series, size) for size in ("wide", "narrow"))) for series in found.series}
    page = template("profile.html.j2", visible=figures.visible)
    return page.render(sheet=sheet, charts=charts, figures_of=lambda block: ["before", "after", "worse by"])


def _change(change: ChangePoint) -> tuple[str, ...]:
    place = change.label or change.commit or str(change.index + 1)
    return place, figures.number(change.before), figures.number(change.after), f"{change.worse_pct:+.1f} %"


def _sized(series: object, size: str) -> str:
    return f'<div class="{size}">{gate_pictures.series(series, size)}</div>'  # type: ignore[arg-type]


def _compared(result: CompareResult) -> str:
    how = "paired starts here and now" if result.mode == "paired" else "against the stored baseline"
    before, now = (side.commit[:12] if side.commit else side.source for side in (result.baseline, result.current))
    where = f" on {result.machine_profile}" if result.machine_profile else ""
    spent = f", {figures.seconds(result.spent_s)}" if result.spent_s else ""
    return f"{before} → {now}, {how}{where}{spent}"


def _shown(result: CompareResult) -> list[GateCheck]:
    """Without figures that neither side has."""
    return [check for check in result.checks if check.result != "skipped" or check.baseline is not None or check.current is not None]


def _cells(check: GateCheck) -> tuple[str, ...]:
    unit = {"percent": " %", "points": " points", "a step": ""}[check.unit]
    digits = ".2g" if check.unit == "a step" else ".1f"
    worse = figures.DASH if check.worse is None else f"{check.worse + 0.0:+{digits}}{unit}".replace("-0.0 ", "+0.0 ")
    interval = figures.DASH if check.low is None or check.high is None else f"[{check.low:+{digits}}, {check.high:+{digits}}]"
    return (check.name, figures.cell(check.baseline), figures.cell(check.current), worse, interval, f"{check.limit:g}{unit}", check.result)


def _result(word: str) -> RenderableType:
    tone = WORDS[word]
    return ink.ink(word if word == "skipped" else f"{MARKS[tone]} {word}", "" if word == "skipped" else ink.STYLES[tone])


def _slower(part: SlowerPart) -> str:
    phase = f"phase {part.phase}: {figures.cell(part.baseline_ms)} → {figures.cell(part.current_ms)} ms a step"
    if part.location is None:
        return phase
    was = "not seen before" if part.line_baseline_ms is None else f"{figures.cell(part.line_baseline_ms)} ms before"
    return f"{phase}, most of it at {figures.place(part.location)}: {figures.cell(part.line_current_ms)} ms, {was}"


def _command(level: str, said: str, title: str, place: dict[str, str] | None = None) -> str:
    properties = {**(place or {}), "title": title}
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {written}::{_data(said)}"


def _data(text: str) -> str:
    return figures.visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _text(value: str) -> str:
    """Other people's text on one line, without meaning to Markdown or HTML."""
    return re.sub(r"([\\`*_|<>\[\]~])", r"\\\1", " ".join(figures.visible(value).split()))


def _spark(values: list[float]) -> str:
    low, high = min(values), max(values)
    if high == low:
        return _SPARKS[3] * min(len(values), 40)
    return "".join(_SPARKS[round((value - low) / (high - low) * 7)] for value in values[-40:])
