"""xprof's aggregate tables of an XPlane file, where the package xprof is installed; it is never needed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainflash.errors import UsageError
from trainflash.profile.events import Profile

TOOLS = ("overview_page", "kernel_stats", "framework_op_stats", "op_profile", "hlo_stats", "memory_profile", "input_pipeline_analyzer")


def added(profile: Profile, xplanes: Sequence[Path], output_dir: Path | None, count_events: bool) -> Profile:
    """The profile with xprof's tables in `tables` (and, asked for, `trace_viewer_events`); each is written to `output_dir` as JSON.

    Without the package the profile stays as it is, unless one of the two options was given: then `UsageError`.
    """
    wanted = output_dir is not None or count_events
    if not xplanes:
        if wanted:
            raise UsageError("--xplane-output-dir and --xplane-count-trace-events need an XPlane protobuf", "name one with --xplane-file")
        return profile
    with _quiet():
        convert = _converter()
    if convert is None:
        if wanted:
            raise UsageError(
                "xprof's tables need the package xprof, which is not installed here", "pip install xprof, or leave the option out"
            )
        return profile
    if output_dir is not None:
        try:
            output_dir.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            raise UsageError(f"{output_dir} cannot be made: {fault.strerror}", "name another directory with --xplane-output-dir") from None
    tables, notes = {}, list(profile.notes)
    for tool in TOOLS:
        table, fault = _table(convert, xplanes, tool)
        if fault:
            notes.append(f"xprof gave no {tool}: {fault}")
        elif table is not None:
            tables[tool] = table
            if output_dir is not None:
                _write(output_dir / f"{tool}.json", table)
    if count_events:
        viewer, fault = _table(convert, xplanes, "trace_viewer")
        events = viewer.get("traceEvents") if isinstance(viewer, dict) else None
        if isinstance(events, list):
            tables["trace_viewer_events"] = len(events)
        else:
            notes.append(f"xprof did not count its trace viewer's events: {fault or 'it gave none'}")
    return replace(profile, tables=tables, notes=tuple(notes))


@contextmanager
def _quiet() -> Iterator[None]:
    """Lines that xprof's native code logs are not ours: what it writes to stderr meanwhile is dropped."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _converter() -> Any | None:
    try:
        from xprof.convert import raw_to_tool_data
    except Exception:  # loads TensorFlow's profiler and protobuf, which refuse in ways of their own (VersionError is a bare Exception)
        return None
    return raw_to_tool_data.xspace_to_tool_data


def _table(convert: Any, xplanes: Sequence[Path], tool: str) -> tuple[Any, str | None]:
    """(the table as plain values or None, what went wrong)."""
    try:
        with _quiet():
            data, _ = convert([str(path) for path in xplanes], tool, {"use_saved_result": False})
    except Exception as fault:  # native code and some twenty converters behind one call, none of which says what it raises; it is noted
        return None, str(fault).split("\n")[0][:200] or type(fault).__name__
    if data is None or not str(data).strip():
        return None, None
    try:
        return (json.loads(data) if isinstance(data, bytes | str) else data), None
    except ValueError:
        return None, "it is no JSON"


def _write(path: Path, table: Any) -> None:
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_text(json.dumps(table), encoding="utf-8")
    beside.replace(path)
