"""What an assistant told of itself in what it printed: its cost, its model, its last words, and why it could not work at all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

READ_BYTES = 4 << 20  # of the end of a transcript
_COSTS = ("total_cost_usd", "cost_usd", "totalCostUsd")
_WORDS = ("result", "response", "message", "text")
_PRINTED = (  # aider: "$0.02 message, $0.05 session"; mini: "(step 4, $0.03)"
    re.compile(r"\$([\d.]+) session"),
    re.compile(r"\(step \d+, \$([\d.]+)\)"),
)
# What no second attempt mends, in the words of the programs; only asked where one ended without a change.
_ENDINGS = tuple(
    (what, re.compile("|".join(words), re.IGNORECASE))
    for what, words in (
        ("its login is missing", (
            r"not logged in", r"please run /login", r"no authentication",
            r"set up your global config", r"log ?in (?:is )?required", r"not authenticated", r"codex login", r"unauthori[sz]ed",
            r"authentication(?:_error| (?:failed|required|error))", r"set an auth method", r"invalid[_ ]grant", r"\b401\b",
            r"(?:no|invalid) api[_ -]keys?", r"api[_ -]key(?: \w+){0,3} (?:not (?:found|set)|missing|required|invalid)",
            r"missing (?:api|environment variable).{0,40}key",
        )),
        ("its model is not known", (
            r"(?:unknown|invalid|no such) model", r"model[_ ]not[_ ]found", r"not_found_error.{0,40}model",
            r"model\W.{0,60}(?:not found|(?:does|may) not exist|not (?:available|supported))",
        )),
        ("its budget is spent", (
            r"credit balance is too low", r"insufficient[_ ](?:quota|credits?|funds|balance)", r"quota exceeded", r"\b402\b",
            r"exceeded your current quota", r"usage limit (?:reached|exceeded)", r"hit your (?:usage )?limit", r"payment required",
            r"(?:exceeded|reached).{0,20}(?:max(?:imum)? )?budget", r"error_max_budget", r"cost limit", r"limits? ?exceeded",
        )),
    )
)  # fmt: skip
_LINE = 200  # characters of a line that is quoted


@dataclass(frozen=True)
class Told:
    """`cost_usd` None: it does not say. `words`: the end of what it answered."""

    cost_usd: float | None = None
    model: str = ""
    words: str = ""
    failed: bool = False  # by its own account


def read(log: Path) -> str:
    """The end of a transcript, as text."""
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - READ_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def told(text: str) -> Told:
    """What `text`, all that was printed, tells: documents of JSON among lines of other text, in the forms of the known programs."""
    costs, steps, model, words, failed, chunks = [], 0.0, "", "", False, ""
    for document in documents(text):
        costs += [float(document[name]) for name in _COSTS if _number(document.get(name))]
        part = document.get("part")
        if isinstance(part, dict) and _number(part.get("cost")):  # opencode: one for each step
            steps += float(part["cost"])
        model = _model(document) or model
        failed = failed or document.get("is_error") is True or bool(document.get("error"))
        words = _said(document) or words
        chunks += _chunk(document)
    printed = [float(found) for pattern in _PRINTED for found in pattern.findall(text) if _number_text(found)]
    cost = max(costs, default=None) if costs else steps if steps else printed[-1] if printed else None
    return Told(cost, model, words or chunks.strip() or "\n".join(text.strip().splitlines()[-3:]), failed)


def why_not_at_all(text: str) -> str:
    """Why this author cannot work here, with its own line, preferably of its answer; "" where nothing says so."""
    for line in (*told(text).words.splitlines(), *reversed(text.splitlines())):
        for what, pattern in _ENDINGS:
            if found := pattern.search(line):
                start = max(0, found.start() - _LINE // 2)
                return f"{what}: {line[start : start + _LINE].strip()}"
    return ""


def documents(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects that begin a line of `text`."""
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find("{", at)) >= 0:
        if at and text[at - 1] != "\n":
            at += 1
            continue
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        at = end
        if isinstance(found, dict):
            yield found


def _said(document: dict[str, Any]) -> str:
    """What a document says in words: the field of a result, or of the item (codex) or part (opencode) in it."""
    for held in (document, document.get("item"), document.get("part")):
        if isinstance(held, dict):
            found = next((held[name] for name in _WORDS if isinstance(held.get(name), str) and held[name].strip()), "")
            if found:
                return found
    return ""


def _chunk(document: dict[str, Any]) -> str:
    """A piece of what an agent says over the Agent Client Protocol."""
    held: Any = document
    for name in ("params", "update", "content", "text"):
        held = held.get(name) if isinstance(held, dict) else None
    return held if isinstance(held, str) else ""


def _model(document: dict[str, Any]) -> str:
    stats = document.get("stats")
    tables = (document.get("modelUsage"), stats.get("models") if isinstance(stats, dict) else None)
    named = next((table for table in tables if isinstance(table, dict) and table), {})
    given = document.get("model")
    return ", ".join(map(str, named)) or (given if isinstance(given, str) else "")


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf")


def _number_text(text: str) -> bool:
    try:
        return float(text) >= 0
    except ValueError:
        return False
