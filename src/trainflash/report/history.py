"""The tuning log as a table, and a small chart of what each experiment was worth."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from trainflash.report import figures
from trainflash.report.ink import STYLES, Fitted, explained, ink, joined, mark, table, tone_of
from trainflash.schema import LogEntry, Speedup

_WIDE = 96
_NARROW = 60
_LEAST_SPAN = 0.1  # in log units: a chart of gains below 10 % must not look like one of large gains


def log(entries: Sequence[LogEntry]) -> RenderableType:
    """Everything tried and decided, oldest first; then the speed-ups with their intervals on one logarithmic axis."""
    if not entries:
        return Text("The log is empty.")
    parts: list[RenderableType] = [Fitted(lambda width: _table(entries, width))]
    drawn = [entry for entry in _last_of_each(entries) if entry.speedup]
    if drawn:
        parts += [Text(), Fitted(lambda width: _chart(drawn, width))]
    return Group(*parts)


def _table(entries: Sequence[LogEntry], width: int) -> RenderableType:
    wide = width >= _WIDE
    made = table("When (UTC)", "What", *(("Step ms",) if wide else ()), "Speed-up", "Decision", right=("Speed-up", "Step ms"))
    for entry in entries:
        decision = (
            mark(entry.decision, f"{entry.decision} by {entry.by}" if entry.by != "trainflash" else None) if entry.decision else Text("")
        )
        gain = figures.times(entry.speedup.mean) if entry.speedup else (figures.DASH if entry.kind in {"experiment", "combination"} else "")
        when = figures.clock(entry.at_utc) if width >= _NARROW else figures.clock(entry.at_utc)[11:]
        made.add_row(when, _what(entry), *((_steps(entry),) if wide else ()), gain, decision)
    return explained(made)


def _what(entry: LogEntry) -> Text:
    number = f"#{entry.experiment} " if entry.experiment is not None and entry.kind == "experiment" else ""
    about = f" on #{entry.experiment}" if entry.experiment is not None and not number else ""
    plain = bool(number) or entry.kind == "combination"
    what = joined((number, "bold"), ink(entry.what if plain else f"{entry.kind}{about}: {entry.what}"))
    refused = entry.kind in {"experiment", "author"} and entry.decision != "accepted" and entry.reasons
    return joined(what, "\n", ink(entry.reasons[0], "bright_black")) if refused else what


def _steps(entry: LogEntry) -> str:
    if entry.before_step_ms is None:
        return ""
    before = figures.number(entry.before_step_ms)
    return before if entry.after_step_ms is None else f"{before} → {figures.number(entry.after_step_ms)}"


def _last_of_each(entries: Sequence[LogEntry]) -> list[LogEntry]:
    """What was judged again stands once, as judged last."""
    last: dict[tuple[str, int | str], LogEntry] = {}
    for entry in entries:
        if entry.kind == "sandbox":
            last.clear()
        if entry.kind in {"experiment", "combination"}:
            last[entry.kind, entry.experiment if entry.experiment is not None else entry.what] = entry
    return list(last.values())


def _chart(drawn: Sequence[LogEntry], width: int) -> RenderableType:
    known = [entry.speedup for entry in drawn if entry.speedup]
    low = min(0.0, *(_log(each.ci_low) for each in known))
    high = max(low + _LEAST_SPAN, *(_log(each.ci_high) for each in known))
    cells = max(12, min(48, width - 40))
    made = table("", "", "", right=(), title="Speed-up with its 95 % interval; │ is 1×")
    made.show_header = False
    for entry in drawn:
        assert entry.speedup is not None
        name = f"#{entry.experiment} {entry.knob}" if entry.kind == "experiment" else "all together"
        style = STYLES[tone_of(entry.decision or entry.verdict)]
        made.add_row(
            figures.short(name, 24), Text(_whisker(entry.speedup, low, high, cells), style=style), figures.times(entry.speedup.mean)
        )
    return made


def _whisker(speedup: Speedup, low: float, high: float, cells: int) -> str:
    def place(value: float) -> int:
        return min(cells - 1, max(0, round((value - low) / (high - low) * (cells - 1))))

    row = [" "] * cells
    row[place(0.0)] = "│"
    first, last = place(_log(speedup.ci_low)), place(_log(speedup.ci_high))
    row[first : last + 1] = "─" * (last + 1 - first)
    row[first], row[last] = "├", "┤"
    row[place(_log(speedup.mean))] = "●"
    return "".join(row)


def _log(value: float) -> float:
    return math.log(max(value, 1e-3))
