"""Values as they stand in a word of a shell script or of the command."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from trainflash.knobs.project import sets_option

TYPED = re.compile(r"(?P<quote>[\"']?)(?P<text>[\w.+-]+)(?P=quote)")  # a value that means what it says: no variable, no substitution


def value_of(text: str) -> Any:
    """The text as a number or switch where it is one."""
    lowered = {"true": True, "false": False}.get(text.lower())
    if lowered is not None:
        return lowered
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else text


def spelled(old: str, value: Any) -> str:
    """`value` in the spelling of the old one."""
    text = str(value)
    return text.lower() if isinstance(value, bool) and not old[:1].isupper() else text


def values_of(words: Sequence[str], options: tuple[str, ...], declared: Collection[str]) -> list[tuple[int, int]] | None:
    """Where `words` give a value to one of `options`, which are among those `declared`: the index of the word that holds it, and where in
    that word it begins.

    None where one stands without a value.
    """
    found = []
    for at, word in enumerate(words):
        if not any(sets_option(word, each, declared) for each in options):
            continue
        name, equals, _ = word.partition("=")
        if equals:
            found.append((at, len(name) + 1))
        elif re.fullmatch(r"-\w\d+", word):  # `-j4`
            found.append((at, 2))
        elif at + 1 < len(words):
            found.append((at + 1, 0))
        else:
            return None
    return found
