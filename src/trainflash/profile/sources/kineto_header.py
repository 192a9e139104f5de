"""What stands beside the events of a JSON trace: who recorded it, with what, and what the tracer itself says it lost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from trainflash.profile.events import Identity

_RANK_IN_NAME = re.compile(r"(?:^|[^a-z])rank[-_. ]?(\d{1,6})(?!\d)", re.IGNORECASE)
_WORKER_IN_NAME = re.compile(r"(?:^|[^a-z])(?:worker|gpu|trainer)[-_]?(\d{1,6})(?=[-_.])", re.IGNORECASE)
_HANDLER_NAME = re.compile(r"^(?P<host>.+)_(?P<pid>\d+)\.(?:\d+\.)?pt\.trace\.json")  # torch's tensorboard_trace_handler
_STOPPED = re.compile(r"CUPTI stopped early\? = ([1-9]\d*)")
_KEPT_TEXT = 4000  # characters of one value in the provenance
_NOT_PROVENANCE = frozenset({"INFO", "baseTimeNanoseconds", "displayTimeUnit", "stackFrames", "samples", "traceName", "trace_id"})


def identity_of(headers: Mapping[str, Any], file: str) -> Identity:
    """Rank and group from `distributedInfo`, else the rank that the file's name says."""
    name = PurePath(file).name
    by_handler = _HANDLER_NAME.match(name)
    host = by_handler["host"] if by_handler else None
    pid = int(by_handler["pid"]) if by_handler and len(by_handler["pid"]) < 12 else None
    for header in ("distributedInfo", "trainflash"):  # Kineto's own, and what `profile capture` adds
        info = headers.get(header)
        if isinstance(info, dict):
            break
    if isinstance(info, dict) and _count(info.get("rank")) is not None:
        groups = info.get("pg_config")
        groups = tuple(group for group in groups if isinstance(group, dict)) if isinstance(groups, list) else ()
        backend = info.get("backend")
        world = _count(info.get("world_size"))
        return Identity(info["rank"], world, header, host, pid, backend if isinstance(backend, str) else None, groups)
    rank = rank_in_name(name)
    return Identity(rank, None, None if rank is None else "file name", host, pid)


def rank_in_name(name: str) -> int | None:
    """N of "rank3", "worker3_", …; None if the name says none."""
    found = _RANK_IN_NAME.search(name) or _WORKER_IN_NAME.search(name)
    return int(found[1]) if found else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31 else None


def provenance_of(headers: Mapping[str, Any]) -> dict[str, Any]:
    """What was recorded, with which versions on which devices; log lines, names and ids of this one file are left out."""
    return {key: _shortened(value) for key, value in sorted(headers.items()) if key not in _NOT_PROVENANCE and value is not None}


def _shortened(value: Any) -> Any:
    return value[:_KEPT_TEXT] if isinstance(value, str) else value


def notes_of(headers: Mapping[str, Any]) -> list[str]:
    """What the tracer's own log says about lost records."""
    lines = headers.get("INFO")
    text = "\n".join(line for line in lines if isinstance(line, str)) if isinstance(lines, list) else ""
    return ["CUPTI stopped recording early: its buffers were full"] if _STOPPED.search(text) else []
