"""The tuning log on a terminal: a table of everything, and a chart whose marks stand where the figures say."""

from __future__ import annotations

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as some
from rich.console import Console

from trainflash import report
from trainflash.report.history import _whisker
from trainflash.schema import LogEntry, Speedup

HOSTILE = "[bold]x[/bold] \x1b[31mred"


def shown(entries, width: int = 120) -> str:
    out = StringIO()
    Console(file=out, width=width, legacy_windows=False).print(report.log(entries))
    return out.getvalue()


def experiment(n: int, decision: str, mean: float | None, reason: str = "", **fields) -> LogEntry:
    speedup = None if mean is None else Speedup(mean, mean - 0.1, mean + 0.1, 4)
    return LogEntry(
        kind="experiment", at_utc="2026-11-21T12:00:00Z", what=f"knob_{n} = 2", experiment=n, knob=f"knob_{n}", decision=decision,
        speedup=speedup, reasons=(reason,) if reason else (), **fields,
    )  # fmt: skip


ENTRIES = (
    LogEntry(kind="sandbox", at_utc="2026-11-21T11:00:00Z", what="sandbox of /p"),
    experiment(1, "accepted", 1.8, before_step_ms=10.0, after_step_ms=5.5),
    experiment(2, "rejected", None, "fidelity: order changed"),
    experiment(3, "rejected", 0.7, "speed: slower"),
    LogEntry(kind="note", at_utc="2026-11-21T12:01:00Z", what=f"two cores {HOSTILE}", experiment=3, by="owner or assistant"),
    LogEntry(kind="combination", at_utc="2026-11-21T12:02:00Z", what="together: 1", decision="accept", speedup=Speedup(1.75, 1.7, 1.8, 4)),
)


def test_everything_stands_in_the_table():
    text = shown(ENTRIES)
    for words in (
        "#1 knob_1",
        "10.0 → 5.50",
        "fidelity: order changed",
        "speed: slower",
        "note on #3: two cores",
        "✓ accepted",
        "✗ rejected",
    ):
        assert words in text, words
    assert "\x1b" not in text and "[bold]x[/bold]" in text


def test_the_chart_has_each_measured_experiment_once():
    text = shown((*ENTRIES, experiment(3, "rejected", 0.8, "speed: slower again")))
    chart = text[text.index("95 % interval") :]
    assert [word for word in ("#1", "#2", "#3", "all together") if word in chart] == ["#1", "#3", "all together"]
    assert chart.count("●") == 3 and "0.80×" in chart and "0.70×" not in chart


@pytest.mark.parametrize("width", [30, 50, 80, 200])
def test_any_width_will_do(width):
    assert "knob_1" in shown(ENTRIES, width).replace("\n", "")


def test_a_log_without_figures_has_no_chart():
    assert "interval" not in shown((ENTRIES[0], ENTRIES[2]))
    assert "empty" in shown(())


@given(some.floats(1e-6, 1e6), some.floats(0, 5), some.floats(0, 5), some.integers(12, 60))
def test_a_whisker_stays_in_its_cells_and_in_order(mean, below, above, cells):
    row = _whisker(Speedup(mean, mean / (1 + below), mean * (1 + above), 4), -1.0, 1.0, cells)
    assert len(row) == cells and row.count("●") == 1
    first, last = row.find("├"), row.find("┤")
    assert first <= row.index("●") or first < 0
    assert last < 0 or last >= row.index("●")
