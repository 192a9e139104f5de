"""Phase events that somebody else sends, checked one by one: nothing that is unknown or malformed gets into a session."""

from __future__ import annotations

import difflib
import json
import math
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from trainflash.errors import UsageError
from trainflash.trace import marked

PHASES = marked.MARKS
KEYS = ("phase", "event", "step", "ts", "rank", "metadata")
MOST_STEP = 2**31 - 1
MOST_RANK = 2**16 - 1
LATEST_TS_S = 9e9  # the year 2255, and what 64 bits of nanoseconds hold; what is larger counts milliseconds or less
LINE_BYTES = 64 * 1024
_NS = 1e9


def packed(event: Mapping[str, Any], where: str = "event") -> bytes:
    """One event as a record of `trace.marked`. `where` begins the message of the `UsageError` that says what is wrong with it."""
    unknown = [name for name in event if name not in KEYS]
    if unknown:
        raise UsageError(f"{where}: there is no field {unknown[0]!r}", f"an event has {', '.join(KEYS)}")
    metadata = event.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise UsageError(f"{where}: metadata is {_shown(metadata)}, no object", "leave it out, or give an object")
    rank = event["rank"] if event.get("rank") is not None else metadata.get("rank", 0)
    return marked.LAYOUT.pack(
        _time(event.get("ts"), where),
        _whole(event.get("step"), "step", MOST_STEP, where) if event.get("step") is not None else marked.NO_STEP,
        _whole(rank, "rank", MOST_RANK, where),
        PHASES.index(_phase(event.get("phase"), where)),
        _start(event.get("event"), where),
    )


def from_list(events: Iterable[Any]) -> Iterator[bytes]:
    """Records of inline events."""
    for number, event in enumerate(events):
        where = f"event {number}"
        if not isinstance(event, Mapping):
            raise UsageError(f"{where}: is {_shown(event)}, no object", "an event is an object such as {phase, event, step, ts}")
        yield packed(event, where)


def from_file(path: Path) -> Iterator[bytes]:
    """Records of a file of JSON lines, one at a time; empty lines are passed over. Raises `UsageError` with the line's number."""
    try:
        kind = os.stat(path).st_mode
        if not stat.S_ISREG(kind):
            raise UsageError(f"{path} is no file", "name a file of JSON lines")
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LINE_BYTES + 1), b""), 1):
                where = f"{path.name}:{number}"
                if len(line) > LINE_BYTES:
                    raise UsageError(f"{where}: a line of more than {LINE_BYTES} bytes", "one event a line, as JSON")
                if line.strip():
                    yield packed(_object(line, where), where)
    except OSError as bad:
        raise UsageError(f"{path}: {bad.strerror or bad}", "name a file of JSON lines that can be read") from None


def _object(line: bytes, where: str) -> Mapping[str, Any]:
    try:
        read = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise UsageError(f"{where}: is not JSON", "one event a line, as JSON") from None
    if not isinstance(read, Mapping):
        raise UsageError(f"{where}: is no object", "an event is an object such as {phase, event, step, ts}")
    return read


def _no_number(name: str) -> float:
    raise ValueError(name)


def _phase(value: Any, where: str) -> str:
    if isinstance(value, str) and value in PHASES:
        return value
    near = difflib.get_close_matches(str(value).capitalize(), PHASES, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise UsageError(f"{where}: there is no phase {_shown(value)}", f"phases: {', '.join(PHASES)}{meant}")


def _start(value: Any, where: str) -> int:
    told = value.lower() if isinstance(value, str) else value
    if told not in ("start", "end"):
        raise UsageError(f"{where}: event is {_shown(value)}", "event is start or end")
    return int(told == "start")


def _whole(value: Any, name: str, most: int, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise UsageError(f"{where}: {name} is {_shown(value)}", f"{name} is a whole number from 0 to {most}")
    return value


def _time(value: Any, where: str) -> int:
    if value is None:
        return time.time_ns()
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= LATEST_TS_S:
        raise UsageError(f"{where}: ts is {_shown(value)}", "ts is in seconds, such as time.time(); leave it out for now")
    return round(value * _NS)


def _shown(value: Any) -> str:
    """The value as it may stand in a message: short, on one line."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
