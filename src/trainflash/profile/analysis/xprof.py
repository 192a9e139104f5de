"""What the optional package xprof says of the same XPlane file: statements, averages, kernels, and steps where nothing else marks them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from trainflash.profile.analysis.step_marks import RankSteps
from trainflash.schema.profiles import XprofKernel, XprofTables

MOST_KERNELS = 10
NS_PER_MS = 1_000_000
_TAG = re.compile(r"<[^>]*>")
_STATEMENT = re.compile(r"(?:^|_)statement$|_conclusion$|^remark_text$")
_AVERAGE = re.compile(r"_ms_av(?:era)?g(?:e)?$")


def tables(given: Mapping[str, Any]) -> XprofTables | None:
    """The tables in words and figures; None without them."""
    if not given:
        return None
    said: dict[str, None] = {}
    averages: dict[str, float] = {}
    for table in _list(given.get("overview_page")):
        for key, value in sorted(_properties(table).items()):
            text = " ".join(_TAG.sub(" ", value).split()) if isinstance(value, str) else ""
            if _STATEMENT.search(key) and text:
                said[text] = None
            elif key == "bottleneck" and text not in {"", "unknown", "no"}:
                said[f"bottleneck: {text}"] = None
            elif _AVERAGE.search(key) and _number(value):
                averages[key] = _number(value)
    count = given.get("trace_viewer_events")
    return XprofTables(
        tables=tuple(sorted(name for name in given if name != "trace_viewer_events")),
        bottlenecks=tuple(said),
        trace_events=count if isinstance(count, int) else None,
        averages=averages,
        kernels=_kernels(given.get("kernel_stats")),
    )


def steps(given: Mapping[str, Any]) -> RankSteps | None:
    """Steps of the overview's table of steps, laid end to end; None where it has none."""
    for table in _list(given.get("overview_page")):
        rows = [(_number(row.get("stepnum")), _number(row.get("stepTimeMs"))) for row in _rows(table)]
        known = [(int(number), int(ms * NS_PER_MS)) for number, ms in rows if number is not None and ms]
        if known:
            end = np.cumsum([duration for _, duration in known])
            duration = np.asarray([duration for _, duration in known], np.int64)
            return RankSteps(np.asarray([number for number, _ in known], np.int64), end - duration, end, "xprof")
    return None


def _kernels(table: Any) -> tuple[XprofKernel, ...]:
    found: dict[str, list[float]] = {}
    for row in _rows(table):
        name, time = row.get("kernel_name"), _number(row.get("total_duration_us"))
        if isinstance(name, str) and time is not None:
            sums = found.setdefault(name, [0.0, 0.0])
            sums[0] += time
            sums[1] += _number(row.get("occurrences")) or 0.0
    ordered = sorted(found.items(), key=lambda item: (-item[1][0], item[0]))
    return tuple(XprofKernel(name, round(time, 3), int(count)) for name, (time, count) in ordered[:MOST_KERNELS])


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _properties(table: Any) -> Mapping[str, Any]:
    found = table.get("p") if isinstance(table, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _rows(table: Any) -> Iterator[dict[str, Any]]:
    """Rows of a table as Google's charts write them: columns with ids, cells with values."""
    if not isinstance(table, Mapping):
        return
    names = [column.get("id") for column in _list(table.get("cols")) if isinstance(column, Mapping)]
    for row in _list(table.get("rows")):
        cells = _list(row.get("c")) if isinstance(row, Mapping) else []
        yield {name: cell.get("v") for name, cell in zip(names, cells, strict=False) if isinstance(cell, Mapping)}


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
