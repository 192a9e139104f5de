"""Values as they stand in a word of a shell script or of the command."""

from __future__ import annotations

import re
from typing import Any

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
