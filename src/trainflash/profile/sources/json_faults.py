"""Where in a text a fault lies that msgspec names, and where an event ends before it."""

from __future__ import annotations

import re
from collections import deque

_BYTE = re.compile(r"\(byte (\d+)\)")


def last_match(pattern: re.Pattern, buffer: bytearray, first: int, last: int) -> re.Match | None:
    """The last match that lies in buffer[first:last], looked for from the end in growing steps."""
    step = 1 << 12
    while True:
        begin = max(first, last - step)
        found = next(iter(deque(pattern.finditer(buffer, begin, last), 1)), None)
        if found or begin == first:
            return found
        step *= 8


def end_of_value(fault: Exception) -> int | None:
    """Where the first JSON value ended, if the fault is that more follows it."""
    if "trailing characters" not in str(fault):
        return None
    return int(_BYTE.search(str(fault))[1]) - 1


def fault_place(fault: Exception, first: int, last: int) -> int | None:
    """The place in the buffer that the fault names; `last` for a text that ends too early, None where it names none."""
    found = _BYTE.search(str(fault))
    if found:
        return min(first + int(found[1]), last)
    return last if "truncated" in str(fault) else None
