"""Patterns: rewrites that no knob makes, told to whoever writes a patch. A new one needs only a file in `templates/patterns`, no code.

A brief quotes those that fit its place; `trainflash explain NAME` shows one. History of `pattern.v1`: first version.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import yaml

from trainflash import resources
from trainflash.errors import UsageError
from trainflash.schema import KINDS, Kind, Quoted, documents, from_plain

MEND = "correct the pattern file; CONTRIBUTING.md says what each field holds, and templates/patterns has examples"
LONGEST = 24  # lines of `before` and `after`: an example, not a program
QUOTED_AT_MOST = 3  # in one brief: whoever reads it has the code to read too
_FIELD = re.compile(r"`\$\.(\w+)(?:\[(\d+|\.\.\.)\])?")


@dataclass(frozen=True)
class Pattern:
    """One pattern file. `before` and `after` are short Python of its own, never a piece of somebody's program."""

    SCHEMA: ClassVar[str] = "pattern.v1"
    name: str
    title: str  # the rewrite in half a line, as an order
    answers: tuple[Kind, ...]  # findings at whose place it may help, the likeliest first
    symptom: str  # what is seen in the code and in the figures
    before: str
    after: str
    keeps: str  # what stays the same, and why that is so
    traps: tuple[str, ...]  # where the rewrite trains something else, or is slower
    signs: tuple[str, ...] = ()  # regular expressions; without one of them in the code around the place it is not quoted. (): always
    source: tuple[str, ...] = ()  # public documents of what it rests on
    replaces: tuple[str, ...] = ()  # knobs that once made this rewrite by themselves: plans, logs and people still call it by their names


def load(path: Path) -> Pattern:
    """The pattern in `path`. Raises `UsageError` that names the file, the line and the field."""
    try:
        text = path.read_text(encoding="utf-8")
        plain = documents.load_yaml(text)
        tree = yaml.compose(text, documents.YAML_LOADER)
    except yaml.MarkedYAMLError as bad:
        mark = bad.problem_mark or bad.context_mark
        where = path.name if mark is None else f"{path.name}:{mark.line + 1}"
        raise UsageError(f"{where}: cannot be read: {bad.problem}", "quote texts with a colon or a brace; code stands behind `|`") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as bad:
        raise UsageError(f"{path.name}: cannot be read: {str(bad).splitlines()[0]}", MEND) from None
    if not isinstance(tree, yaml.MappingNode) or not isinstance(plain, dict):
        raise UsageError(f"{path.name}:1: is not a mapping", MEND)
    lines = _lines(tree)
    names = [field.name for field in dataclasses.fields(Pattern)]
    for key in plain:
        if key not in (*names, "schema"):
            near = difflib.get_close_matches(str(key), names, 1)
            raise _wrong(path, lines.get((key,), 1), f"unknown field {key!r}{f', did you mean {near[0]!r}?' if near else ''}")
    answers = plain.get("answers")
    for number, word in enumerate(answers if isinstance(answers, list) else ()):
        if isinstance(word, str) and word not in KINDS:
            raise _wrong(path, lines["answers", number], f"answers: {word!r} is none of {', '.join(KINDS)}")
    try:
        pattern = from_plain(Pattern, plain, path.name)
    except UsageError as bad:
        raise _wrong(path, _line_of(bad.message, lines), bad.message.removeprefix(f"{path.name}: ")) from None
    _consistent(pattern, path, lines)
    return pattern


def _lines(tree: yaml.MappingNode) -> dict[tuple[Any, ...], int]:
    """The line, from 1, of each field and of each item of a list in it."""
    found: dict[tuple[Any, ...], int] = {}
    for key, value in tree.value:
        found[(key.value,)] = key.start_mark.line + 1
        if isinstance(value, yaml.SequenceNode):
            found |= {(key.value, number): item.start_mark.line + 1 for number, item in enumerate(value.value)}
    return found


def _line_of(message: str, lines: Mapping[tuple[Any, ...], int]) -> int:
    """The line that an error of the schema is about: it says its place as `$.field[number]`."""
    field = _FIELD.search(message)
    if field is None:
        return 1
    at = (field[1], int(field[2])) if field[2] and field[2].isdigit() else (field[1],)
    return lines.get(at) or lines.get(at[:1], 1)


def _wrong(path: Path, line: int, what: str) -> UsageError:
    return UsageError(f"{path.name}:{line}: {what}", MEND)


def _consistent(pattern: Pattern, path: Path, lines: Mapping[tuple[Any, ...], int]) -> None:
    if pattern.name != path.stem:
        raise _wrong(path, lines["name",], f"name: is {pattern.name!r}, the file's name says {path.stem!r}")
    for name in ("title", "answers", "symptom", "before", "after", "keeps", "traps"):
        if not getattr(pattern, name):
            raise _wrong(path, lines[name,], f"{name}: may not be empty")
    for kind in pattern.answers:
        if kind in {"compute", "hung"}:
            raise _wrong(path, lines["answers",], f"answers: {kind} has no place that a patch could mend")
    for name in ("before", "after"):
        code = getattr(pattern, name)
        if len(code.splitlines()) > LONGEST:
            raise _wrong(path, lines[name,], f"{name}: has {len(code.splitlines())} lines, at most {LONGEST} are read")
        try:
            ast.parse(code)
        except (SyntaxError, ValueError) as bad:
            line = lines[name,] + (getattr(bad, "lineno", None) or 0)  # the code begins on the line behind its name
            raise _wrong(path, line, f"{name}: is no Python: {getattr(bad, 'msg', bad)}") from None
    if pattern.before == pattern.after:
        raise _wrong(path, lines["after",], "after: is what stands before")
    for number, sign in enumerate(pattern.signs):
        try:
            re.compile(sign)
        except re.error as bad:
            raise _wrong(path, lines["signs", number], f"signs: {sign!r} is no regular expression: {bad}") from None
        if not re.search(sign, pattern.before):
            raise _wrong(path, lines["signs", number], f"signs: {sign!r} does not find the pattern's own `before`")


@functools.cache
def catalogue() -> tuple[Pattern, ...]:
    """All patterns, by name."""
    return tuple(load(path) for path in sorted((resources.folder("templates") / "patterns").glob("*.yaml")))


def get(name: str) -> Pattern | None:
    """The pattern called `name`, or that took the place of the knob of that name; None where there is none."""
    return next((each for each in catalogue() if each.name == name), None) or replaced().get(name)


@functools.cache
def replaced() -> Mapping[str, Pattern]:
    """The patterns by the names of the knobs whose place they took."""
    return {name: pattern for pattern in catalogue() for name in pattern.replaces}


def fitting(kind: Kind, code: str) -> tuple[Quoted, ...]:
    """What a brief quotes for a finding of `kind` with `code` around its place: what shows most of its signs first, at most three."""
    ranked = []
    for pattern in catalogue():
        found = sum(bool(re.search(sign, code)) for sign in pattern.signs)
        if kind in pattern.answers and (found or not pattern.signs):
            ranked.append((-found, pattern.answers.index(kind), pattern.name, pattern))
    return tuple(_quoted(pattern) for *_, pattern in sorted(ranked, key=lambda each: each[:3])[:QUOTED_AT_MOST])


def _quoted(pattern: Pattern) -> Quoted:
    return Quoted(pattern.name, pattern.title, pattern.symptom, pattern.before, pattern.after, pattern.keeps, pattern.traps)
