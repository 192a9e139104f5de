"""The answer to one question about a profile: its sentence, then the rows that stand behind it with the columns that tell most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainflash.report import figures
from trainflash.report.profile_sheets import MEMORY, Block, Sheet, number
from trainflash.schema.profile_changes import ProfileAnswer

Row = Mapping[str, Any]

_OPS = ("name", "count", "exclusive_duration", "share_of_total", "launched_by")
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "ops": _OPS,
    "host_ops": _OPS,
    "families": ("family", "count", "exclusive_duration", "share_of_total", "example_op"),
    "collectives": ("collective", "count", "total_duration", "waiting_us", "transfer_us", "exposed_us", "bus_bandwidth_gb_s"),
    "gaps": ("payload_op", "marker_op", "count", "total_gap_duration", "max_gap_duration"),
    "regions": ("path", "count", "inclusive_duration", "exclusive_duration"),
    "contexts": ("region_path", "op_name", "count", "total_gap_duration", "total_overlap_duration"),
    "copies": ("direction", "pinned", "count", "total_duration", "bytes_total", "bandwidth_gb_s", "exposed_us"),
    "steps": ("number", "duration_us", "warmup", "slowest_rank"),
    "step_classes": ("name", "count", "fraction_of_steady", "representative_step", "representative_duration", "periodicity"),
    "ranks": ("rank", "communication_us", "waiting_us", "waiting_share", "last_to_arrive", "caused_waiting_us"),
    "stragglers": ("rank", "last_to_arrive", "of_collectives", "caused_waiting_us", "share_of_waiting"),
    "devices": ("rank", "device", "name", "kernels", "kernel_busy_us", "utilization"),
    "idle": ("cause", "total_us", "share_of_window", "count", "longest_us", "per_step_us"),
    "memory": ("rank", "device", "peak_bytes", "peak_op", "reserved_peak_bytes", "fragmentation", "growth_bytes"),
    "candidates": ("title", "finding", "share", "ceiling_speedup"),
}
_FACTS = {
    "quality": ("num_complete_events", "num_ranks", "world_size", "suspected_truncation"),
    "time_breakdown": (),  # the sentence says all
}
_KIND_OF_QUESTION = {
    "top_ops": "ops",
    "op_context": "ops",
    "pre_op_gap": "gaps",
    "hierarchical_regions": "regions",
    "optimization_candidates": "candidates",
    "compute_vs_communication": "collectives",
    "stragglers": "ranks",  # the question is asked of ranks; who came last stands in their rows
    "step_time": "steps",
}
_HEADINGS = {
    "name": "op",
    "path": "region",
    "region_path": "region",
    "op_name": "op",
    "exclusive_duration": "ms",
    "total_duration": "ms",
    "total_us": "ms",
    "duration_us": "ms",
    "avg_duration": "ms each",
    "representative_duration": "typical ms",
    "inclusive_duration": "ms",
    "total_gap_duration": "ms",
    "max_gap_duration": "longest, ms",
    "longest_us": "longest, ms",
    "total_overlap_duration": "in the region, ms",
    "per_step_us": "ms a step",
    "communication_us": "collectives, ms",
    "kernel_busy_us": "kernels ran, ms",
    "caused_waiting_us": "held others, ms",
    "waiting_share": "of it",
    "share_of_total": "share",
    "share_of_window": "of the window",
    "share_of_waiting": "of all waiting",
    "fraction_of_steady": "of the steps",
    "last_to_arrive": "came last",
    "of_collectives": "of",
    "bytes_total": "bytes",
    "pinned": "host memory",
    "bandwidth_gb_s": "GB/s",
    "bus_bandwidth_gb_s": "bus GB/s",
    "ceiling_speedup": "at most",
}
_REGIONS = {"exclusive_duration": "own ms"}
_NAMES = {"devices": "model", "step_classes": "class"}  # whose `name` is no op
_NOTE = "--json has every field, durations in microseconds"
_MOST_FACTS = 12


def of_answer(answer: ProfileAnswer) -> Sheet:
    """The sheet of an answer."""
    kind = answer.query_type.removeprefix("select_")
    columns = _COLUMNS.get(kind if answer.query_type.startswith("select_") else _KIND_OF_QUESTION.get(kind, kind))
    if columns is None:
        blocks = tuple(_facts(figures.words(kind), row, _FACTS.get(kind, tuple(row))) for row in answer.results)
    else:
        blocks = (_table(figures.words(kind), _shown(columns, answer), answer.results, kind),) if answer.results else ()
    return Sheet("Answer", answer.said, "good", (), (), tuple(block for block in blocks if block.rows or block.notes))


def _shown(columns: Sequence[str], answer: ProfileAnswer) -> tuple[str, ...]:
    """The columns of which any row has something, and the one by which the rows are sorted."""
    rows = answer.results
    known = [name for name in columns if any(row.get(name) not in (None, "", [], ()) for row in rows)]
    asked = answer.facts.get("sorted_by")
    return (*known[:2], asked, *known[2:]) if asked in rows[0] and asked not in known else tuple(known)


def _table(title: str, columns: Sequence[str], rows: Sequence[Row], kind: str) -> Block:
    headings = tuple(_heading(name, kind) for name in columns)
    return Block(title, headings, tuple(tuple(_cell(name, row.get(name)) for name in columns) for row in rows), notes=(_NOTE,))


def _facts(title: str, row: Row, wanted: Sequence[str]) -> Block:
    """One row with many fields: a line for each that is a plain value."""
    plain = [(name, row[name]) for name in wanted if isinstance(row.get(name), str | int | float) and row[name] not in ("", "us")]
    return Block(title, notes=(*(_fact(name, value) for name, value in plain[:_MOST_FACTS]), _NOTE) if plain else ())


def _fact(name: str, value: Any) -> str:
    unit = " ms" if _is_time(name) else ""
    return f"{figures.words(name.removesuffix('_us').removeprefix('num_'))}: {_cell(name, value)}{unit}"


def _heading(name: str, kind: str) -> str:
    if name == "name" and kind in _NAMES:
        return _NAMES[kind]
    if "regions" in kind and name in _REGIONS:
        return _REGIONS[name]
    return _HEADINGS.get(name) or (f"{figures.words(name.removesuffix('_us'))}, ms" if _is_time(name) else figures.words(name))


def _is_time(name: str) -> bool:
    return name.endswith(("_us", "duration"))


def _is_share(name: str) -> bool:
    return "share" in name or name in ("utilization", "fraction_of_steady")


def _cell(name: str, value: Any) -> str:
    if name == "pinned":
        return MEMORY[value]
    if value is None:
        return figures.DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, str):
        return figures.words(value) if name == "cause" else value
    if _is_share(name):
        return figures.percent(value)
    if name == "ceiling_speedup":
        return figures.times(value)
    if name in ("rank", "slowest_rank", "number", "representative_step"):
        return str(value)
    return number(value) if _is_time(name) else f"{value:,}" if isinstance(value, int) else figures.cell(value)
