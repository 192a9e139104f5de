"""Rows of a summary by kind: `select … sort … limit …`. The same selection of the same summary has one answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trainflash.errors import UsageError
from trainflash.schema import to_plain
from trainflash.schema.profile_changes import ProfileAnswer
from trainflash.schema.profiles import ProfileSummary

TOP = 10

SELECTIONS: dict[str, Callable[[ProfileSummary], Sequence[Any]]] = {
    "ops": lambda summary: summary.hot_ops,
    "host_ops": lambda summary: summary.host_ops,
    "sites": lambda summary: summary.source_sites,
    "families": lambda summary: summary.semantic_families,
    "collectives": lambda summary: summary.communication_ops,
    "gaps": lambda summary: summary.gap_before_ops,
    "regions": lambda summary: summary.hierarchical_regions,
    "contexts": lambda summary: summary.gap_region_contexts,
    "copies": lambda summary: summary.copies,
    "steps": lambda summary: summary.step_time.steps,
    "step_classes": lambda summary: summary.step_time.classes,
    "ranks": lambda summary: summary.ranks,
    "stragglers": lambda summary: summary.alignment.stragglers if summary.alignment else (),
    "devices": lambda summary: summary.devices,
    "idle": lambda summary: summary.idle.causes if summary.idle else (),
    "candidates": lambda summary: summary.optimization_candidates,
}
_SORTS = {"exclusive": "exclusive_duration", "total": "total_duration", "avg": "avg_duration", "average": "avg_duration"}


def select(summary: ProfileSummary, what: str, sort: str | None = None, limit: int = TOP, *, ascending: bool = False) -> ProfileAnswer:
    """Rows of one kind, sorted by a field (numbers largest first). Raises `UsageError` for an unknown kind or field."""
    if what not in SELECTIONS:
        raise UsageError(f"there are no {what!r} in a summary", f"select one of: {', '.join(SELECTIONS)}")
    rows = [to_plain(row) for row in SELECTIONS[what](summary)]
    facts: dict[str, Any] = {"available": len(rows)}
    if sort and rows:
        words = (sort, _SORTS.get(sort, sort), f"{sort}_us", f"{sort}_duration")
        field = next((name for name in words if name in rows[0]), sort)
        if field not in rows[0] or isinstance(rows[0][field], list | tuple | dict):
            known = sorted(name for name, value in rows[0].items() if not isinstance(value, list | tuple | dict))
            raise UsageError(f"{what} cannot be sorted by {sort!r}", f"sort by one of: {', '.join(known)}")
        rows = _sorted(rows, field, ascending)
        facts["sorted_by"] = field
    question = f"select {what}" + (f" sort {sort}" if sort else "") + f" limit {limit}"
    said = f"{len(rows[:limit])} of {len(rows)} {what}" + (f", by {sort}" if sort else "")
    return ProfileAnswer(question, f"select_{what}", summary.digest, said, tuple(rows[:limit]), facts)


def _sorted(rows: list[dict[str, Any]], field: str, ascending: bool) -> list[dict[str, Any]]:
    known = [row for row in rows if row[field] is not None]
    numbers = all(isinstance(row[field], int | float) for row in known)
    known.sort(key=lambda row: row[field], reverse=numbers and not ascending)
    return known + [row for row in rows if row[field] is None]
