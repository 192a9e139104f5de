"""The task probes: small questions with one right answer each, judged by exact match or a regular expression, never by a model."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from trainflash.errors import UsageError
from trainflash.gate.config import PROBES

_ITEMS = Path(__file__).with_name("items")


@dataclass(frozen=True)
class Item:
    """One question. `expected`: the answer, or a regular expression that the whole answer matches; then `example` is a right one."""

    id: str
    prompt: str
    match: Literal["exact", "regex"]
    expected: str
    most_tokens: int
    example: str = ""

    def passed(self, answer: str) -> bool:
        """Whether the first line of `answer`, without space around it or a full stop behind it, is right; letters' case counts only where
        the probe is about form."""
        given = answer.strip().partition("\n")[0].strip()
        flags = re.IGNORECASE if self.id.startswith("basic") else 0
        pattern = self.expected if self.match == "regex" else re.escape(self.expected)
        return any(re.fullmatch(pattern, each, flags) is not None for each in (given, given.removesuffix(".")))


@cache
def items(name: str) -> tuple[Item, ...]:
    """The items of a probe, in order. Raises `UsageError` for an unknown one."""
    if name not in PROBES:
        raise UsageError(f"there is no probe {name!r}", f"probes: {', '.join(PROBES)}")
    lines = (_ITEMS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(Item(**json.loads(line)) for line in lines)
