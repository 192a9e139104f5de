"""Additions to the owner's JSON files as insertions into their text: no other byte changes, and taking them out restores the file.

Only plain JSON is edited. A file with comments, with an error in it, or with another type where a list or an object is needed, is left
alone: `insert` says why.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from trainflash.install.agents import Addition

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_INDENT = "  "


class Unfit(Exception):
    """The file cannot be extended; the text says why."""


@dataclass(frozen=True)
class Span:
    """What was put into a text, and where: its first character's index at that time."""

    at: int
    text: str


def parse(text: str) -> dict[str, Any]:
    """The JSON object that the file holds; an empty one is empty. Raises `Unfit`."""
    if not text.strip():
        return {}
    try:
        found = json.loads(text)
    except RecursionError:
        raise Unfit("it is nested too deeply") from None
    except ValueError as bad:
        has_comments = re.search(r"^\s*//|/\*", text, re.M)
        raise Unfit("it has comments, which would be lost" if has_comments else f"it is no valid JSON: {bad}") from None
    if not isinstance(found, dict):
        raise Unfit("it holds no JSON object")
    return found


def insert(text: str, addition: Addition) -> Span | None:
    """The insertion that adds `addition` to `text`; None when it is there already. Raises `Unfit`."""
    holder, depth = parse(text), 0
    if not text.strip():
        whole = json.dumps(_nested(addition, 0), indent=len(_INDENT), ensure_ascii=False)
        return Span(0, whole + "\n")
    keys = addition.path
    for key in keys:
        if not isinstance(holder, dict):
            raise Unfit(f"{keys[depth - 1]!r} in it is no object")
        if key not in holder:
            return _into(text, keys[:depth], key, _nested(addition, depth + 1))
        holder, depth = holder[key], depth + 1
    if not addition.is_item:
        if holder == addition.value:
            return None
        raise Unfit(f"{keys[-1]!r} in it has another value already")
    if not isinstance(holder, list):
        raise Unfit(f"{keys[-1]!r} in it is no list")
    return None if addition.value in holder else _into(text, keys, None, addition.value)


def take(text: str, spans: list[Span]) -> str:
    """The text before the insertions, in the order in which they were made; exact only when nothing else changed since."""
    for span in reversed(spans):
        text = text[: span.at] + text[span.at + len(span.text) :]
    return text


def without(text: str, additions: list[Addition]) -> str:
    """`text`, edited by others since, without `additions` and without what they leave empty; written anew. Raises `Unfit`."""
    document = parse(text)
    for addition in additions:
        _remove(document, addition)
    return json.dumps(document, indent=len(_INDENT), ensure_ascii=False) + "\n"


def _remove(document: dict[str, Any], addition: Addition) -> None:
    trail: list[tuple[dict[str, Any], str]] = []
    holder: Any = document
    for key in addition.path:
        if not isinstance(holder, dict) or key not in holder:
            return
        trail.append((holder, key))
        holder = holder[key]
    if addition.is_item:
        if not isinstance(holder, list) or addition.value not in holder:
            return
        holder.remove(addition.value)
    elif holder == addition.value:
        parent, key = trail.pop()
        del parent[key]
    for parent, key in reversed(trail):
        if parent[key] in ({}, []):
            del parent[key]


def _nested(addition: Addition, depth: int) -> Any:
    """The value inside those of its keys that are still missing from `depth` on."""
    value = [addition.value] if addition.is_item else addition.value
    for key in reversed(addition.path[depth:]):
        value = {key: value}
    return value


def _into(text: str, keys: tuple[str, ...], key: str | None, value: Any) -> Span:
    """The insertion of a member (or, without `key`, an item) at the end of the object or list at `keys`."""
    opening = _find(text, keys)
    last, closing, first = _end(text, opening)
    member_line = text.rfind("\n", 0, first) if first is not None else -1
    spread = "\n" in text[opening:closing]
    if first is not None and spread and member_line > opening:
        indent = text[member_line + 1 : first]
    else:
        line = text.rfind("\n", 0, opening) + 1
        indent = re.match(r"[ \t]*", text[line:]).group() + _INDENT
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = "\t" if indent.startswith("\t") else _INDENT
    lines = spread or (first is None and not keys)
    shown = json.dumps(value, indent=unit, ensure_ascii=False) if lines else json.dumps(value, ensure_ascii=False)
    shown = shown.replace("\n", newline + indent)
    member = shown if key is None else f"{json.dumps(key, ensure_ascii=False)}: {shown}"
    if first is not None:
        return Span(last, f",{newline}{indent}{member}" if lines else f", {member}")
    return Span(opening + 1, f"{newline}{indent}{member}" + ("" if spread else newline) if lines else member)


def _find(text: str, keys: tuple[str, ...]) -> int:
    """Index of the bracket that opens the value at `keys`."""
    at = _SPACE.match(text, 0).end()
    for wanted in keys:
        at = next(start for key, start, _ in _members(text, at) if key == wanted)
    return at


def _end(text: str, opening: int) -> tuple[int, int, int | None]:
    """Where the last member of an object or list ends, where its closing bracket is, and where its first member begins (None: empty)."""
    inside = _SPACE.match(text, opening + 1).end()
    if text[inside] in "]}":
        return opening + 1, inside, None
    members = _members(text, opening) if text[opening] == "{" else _items(text, opening)
    last = [end for _, _, end in members][-1]
    return last, _SPACE.match(text, last).end(), inside


def _members(text: str, opening: int) -> list[tuple[str, int, int]]:
    """Key, start and end of the value of each member of the object at `opening`; a later double of a key counts, as for a parser."""
    found: dict[str, tuple[str, int, int]] = {}
    at = _SPACE.match(text, opening + 1).end()
    while text[at] != "}":
        key, after = _DECODER.raw_decode(text, at)
        start = _SPACE.match(text, _SPACE.match(text, after).end() + 1).end()
        _, end = _DECODER.raw_decode(text, start)
        found.pop(key, None)
        found[key] = (key, start, end)
        at = _SPACE.match(text, end).end()
        at = _SPACE.match(text, at + 1).end() if text[at] == "," else at
    return list(found.values())


def _items(text: str, opening: int) -> list[tuple[str, int, int]]:
    found = []
    at = _SPACE.match(text, opening + 1).end()
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        found.append(("", at, end))
        at = _SPACE.match(text, end).end()
        at = _SPACE.match(text, at + 1).end() if text[at] == "," else at
    return found
