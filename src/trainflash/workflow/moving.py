"""Carries the lines that a diagnosis names onto what was accepted since: an edit above a line moves it.

Without it a knob would look at the line where a call stood when the program ran, and might find its neighbour there.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from trainflash import sandbox
from trainflash.schema import Diagnosis, Location, Summary
from trainflash.workflow.session import Session

NAME = "tree"  # in the folder of a diagnosis: what lay in worktree/ when it ran
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
Shifts = tuple[tuple[int, int, tuple[int, ...]], ...]  # of each hunk: first old line, lines that follow move by, new lines of its old ones
T = TypeVar("T")


def remember(session: Session, run_dir: Path) -> None:
    """Write down which sources a diagnosis is about."""
    (run_dir / NAME).write_text(sandbox.content(session.sandbox, "candidate"), encoding="ascii")


def onto_tip(session: Session, diagnosis: Diagnosis, summary: Summary) -> tuple[Diagnosis, Summary]:
    """A diagnosis of this sandbox with its lines as they are in what is accepted now; says so where that is not what was diagnosed."""
    kept = session.directory / "runs" / diagnosis.run / NAME
    if not kept.is_file():
        return diagnosis, summary
    moved = shifts(sandbox.diff(session.sandbox, kept.read_text(encoding="ascii"), session.tip()))
    if not moved:
        return diagnosis, summary
    session.on_progress("the program was changed since its diagnosis; `trainflash diagnose` says where the time goes now", 0, 0)
    return carried(diagnosis, moved), carried(summary, moved)


def is_of(session: Session, run: str, commit: str) -> bool:
    """Whether exactly this commit lay in `worktree/` when the diagnosis `run` was made; a diagnosis in place is of none."""
    kept = session.directory / "runs" / run / NAME
    return kept.is_file() and not sandbox.diff(session.sandbox, kept.read_text(encoding="ascii"), commit)


def carried(value: T, moved: Mapping[str, Shifts]) -> T:
    """`value` with each `Location` in it, at any depth, where its line stands now."""
    return _carried(value, moved)


def _carried(value: Any, moved: Mapping[str, Shifts]) -> Any:
    if isinstance(value, Location):
        return dataclasses.replace(value, line=line_now(moved.get(value.file, ()), value.line))
    if isinstance(value, tuple):
        return tuple(_carried(each, moved) for each in value)
    if isinstance(value, dict):
        return {key: _carried(each, moved) for key, each in value.items()}
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    return dataclasses.replace(value, **{field.name: _carried(getattr(value, field.name), moved) for field in dataclasses.fields(value)})


def line_now(shifts: Shifts, line: int) -> int:
    """Where `line` of the old file stands in the new one; a line that was taken away stands where the next one does."""
    by = 0
    for first, after, inside in shifts:
        if line < first:
            break
        if line < first + len(inside):
            return inside[line - first]
        by = after
    return max(1, line + by)


def shifts(diff: str) -> dict[str, Shifts]:
    """How the lines of each file move that `diff` changes."""
    found: dict[str, list[tuple[int, int, tuple[int, ...]]]] = {}
    file, rows, head = "", list[str](), None
    for row in [*diff.split("\n"), "diff --git"]:
        hunk = _HUNK.match(row)
        if head is not None and (hunk or row.startswith("diff --git")):
            found.setdefault(file, []).append(_hunk(head, rows))
            head = None
        if hunk:
            head, rows = hunk, []
        elif head is not None:
            rows.append(row)
        elif row.startswith("--- a/"):
            file = row[6:].split("\t")[0]
    return {name: tuple(each) for name, each in found.items()}


def _hunk(head: re.Match[str], rows: list[str]) -> tuple[int, int, tuple[int, ...]]:
    """One hunk: unchanged lines by their place, a rewritten line by what is most like it among those that came for it."""
    old, new = (int(head[n]) + (head[n + 1] == "0") for n in (1, 3))
    first, inside = old, list[int]()
    gone, came = list[str](), list[str]()
    for row in [*rows, " "]:
        if row.startswith("-"):
            gone.append(row[1:])
        elif row.startswith("+"):
            came.append(row[1:])
        elif row.startswith(" "):
            inside += [new + at for at in _paired(gone, came)]
            new += len(came)
            inside.append(new)
            new, gone, came = new + 1, [], []
    inside.pop()  # the line behind, which closed the last change
    return first, new - 1 - (first + len(inside)), tuple(inside)


def _paired(gone: list[str], came: list[str]) -> list[int]:
    """For each line that went, which of those that came stands for it."""
    found: list[int] = []
    for at, line in enumerate(gone):
        likeness = [difflib.SequenceMatcher(None, line.strip(), other.strip()).ratio() for other in came]
        best = max(likeness, default=0.0)
        found.append(likeness.index(best) if best > 0.5 else min(at, len(came)))
    return found
