"""Edits as replacements of byte ranges, and the unified diff that they make.

Every surface (Python, YAML, JSON, TOML) edits the same way: find the bytes of one value, replace only these. Comments, order, line
endings and everything else stay because they are never written again.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trainflash.errors import UsageError
from trainflash.schema import WordChange


@dataclass(frozen=True)
class Splice:
    """Replace the bytes `start` to `end` of `file` (relative to the project) by `text`; `start` = `end` inserts."""

    file: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Variable:
    """Start the program with `name` set to `text`, which nothing in the project does."""

    name: str
    text: str


Edit = Splice | WordChange | Variable


def edited(before: bytes, splices: Iterable[Splice]) -> bytes:
    """`before` with all splices made; insertions at one place keep their order. Raises `UsageError` when two of them overlap."""
    after, last = before, len(before) + 1
    ordered = sorted(enumerate(splices), key=lambda pair: (pair[1].start, pair[0]), reverse=True)
    for _, splice in ordered:
        if splice.end > last:
            raise UsageError(f"{splice.file}: two edits of one knob touch the same text", "make this change by hand")
        after = after[: splice.start] + splice.text.encode("utf-8") + after[splice.end :]
        last = splice.start
    return after


def in_order(words: Iterable[WordChange]) -> tuple[WordChange, ...]:
    """`words`, each once, in an order in which none moves the place of another: what is left out goes last, from the end."""
    return tuple(sorted(dict.fromkeys(words), key=lambda each: (each.after is None, -each.at)))


def contents(root: Path, splices: Iterable[Splice]) -> dict[str, tuple[bytes, bytes]]:
    """Bytes before and after, by file, of the files that the splices really change."""
    changes: dict[str, tuple[bytes, bytes]] = {}
    wanted = tuple(dict.fromkeys(splices))
    for file in sorted({splice.file for splice in wanted}):
        before = (root / file).read_bytes()
        after = edited(before, [splice for splice in wanted if splice.file == file])
        if after != before:
            changes[file] = (before, after)
    return changes


def unified(changes: dict[str, tuple[bytes, bytes]]) -> str:
    """A diff that `git apply` takes: prefixes a/ and b/, paths relative to the project, line endings as they are in the files.

    Bytes that are no UTF-8 stand in it as surrogate escapes. Raises `UsageError` for file names that a diff cannot carry unquoted.
    """
    return "".join(_one(file, before, after) for file, (before, after) in sorted(changes.items()))


def _one(file: str, before: bytes, after: bytes) -> str:
    if any(character in file for character in '"\\\n\r\t'):
        raise UsageError(f"{file!r}: the file's name cannot stand in a patch", "rename the file, or make this change by hand")
    tab = "\t" if " " in file else ""
    lines = difflib.unified_diff(_lines(before), _lines(after), f"a/{file}", f"b/{file}", lineterm="\n")
    out = []
    for number, line in enumerate(lines):
        if number < 2:
            line = line.rstrip("\n") + tab + "\n"
        elif not line.endswith("\n"):
            line += "\n\\ No newline at end of file\n"
        out.append(line)
    return "".join(out)


def _lines(data: bytes) -> list[str]:
    parts = data.split(b"\n")
    lines = [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
    return [line.decode("utf-8", "surrogateescape") for line in lines]
