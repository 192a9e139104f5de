"""Histories: one document a line, added by any number of writers, read past lines that are none."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from trainflash.errors import UsageError
from trainflash.schema.documents import dump_json, from_plain, write_atomically

T = TypeVar("T")


def append(path: Path, document: Any) -> None:
    """Add one line; the file is whole at every moment, and two writers at once both get their line in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = dump_json(document, indent=None)
    with path.with_name(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = path.read_text(encoding="utf-8") if path.exists() else ""
        if known and not known.endswith("\n"):
            known += "\n"
        write_atomically(path, f"{known}{line}\n")


def read(path: Path, cls: type[T], *, what: str, written_by: str, sound: Callable[[T], bool] = lambda record: True) -> tuple[list[T], int]:
    """(the records, how many lines are none or not `sound`). Raises `UsageError` when the file is missing or holds no record.

    `what` ends "holds no"; `written_by` is the command that writes it.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as bad:
        reason = getattr(bad, "strerror", None) or "is no text"
        raise UsageError(f"{path}: {reason}", f"{written_by} writes it") from None
    records, unreadable = [], 0
    for line in filter(None, map(str.strip, lines)):
        try:
            found = from_plain(cls, json.loads(line), str(path))
        except (ValueError, UsageError):
            found = None
        if found is None or not sound(found):
            unreadable += 1
        else:
            records.append(found)
    if not records:
        raise UsageError(f"{path}: holds no {what}", f"{written_by} writes it")
    return records, unreadable
