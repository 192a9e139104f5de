"""Texts that are almost JSON → JSON: what profilers are known to write wrongly, mended one event at a time.

Bare N/A, NaN and infinities become null; control characters, backslashes and quotes inside strings are escaped; bytes that are no UTF-8 are
replaced; a comma too many goes. Every step is tried on top of those before it, so that what was right stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_BARE = re.compile(rb"([:\[,]\s*)[+-]?(?:N/A|NaN|nan|NAN|[Ii]nf(?:inity)?|None|undefined|\?)(?=\s*[,}\]])")
_CONTROL = re.compile(rb"[\x00-\x1f]")
_BACKSLASH = re.compile(rb'\\(?:u(?![0-9a-fA-F]{4})|(?!["\\/bfnrtu]))')
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_HUGE = re.compile(rb"([:\[,]\s*)-?\d+(?:\.\d*)?[eE]\+?\d{3,}(?=\s*[,}\]])")
_TRAILING = re.compile(rb",(?=\s*[}\]])")
_LONE_ESCAPED_END = re.compile(rb'\\"(?=\s*(?:,\s*"[^"\\]{1,40}"\s*:|\}))')
_QUOTE = re.compile(rb'(?<!\\)"')
_OPENS = re.compile(rb"[{\[:,]\s*\Z")
_CLOSES = re.compile(rb"\s*(?::|[}\]]|,\s*[\"{\[\d\-tfn]|\Z)")


def repaired(text: bytes) -> Iterator[bytes]:
    """Candidates, the most careful first; the caller takes the first one that decodes."""
    text = _CONTROL.sub(b" ", text)
    text = text.decode("utf-8", "replace").encode()
    text = _HUGE.sub(rb"\1null", _BARE.sub(rb"\1null", text))
    yield text
    escaped = _BACKSLASH.sub(lambda found: b"\\" + found[0], text)
    escaped = _SURROGATE.sub(b"?", escaped)
    yield escaped
    yield _TRAILING.sub(b"", escaped)
    yield _LONE_ESCAPED_END.sub(rb'\\\\"', escaped)
    yield _TRAILING.sub(b"", _inner_quotes_escaped(escaped))


def _inner_quotes_escaped(text: bytes) -> bytes:
    """Quotes that neither open nor close a string, by what stands around them, escaped."""
    parts, last, inside = [], 0, False
    for found in _QUOTE.finditer(text):
        place = found.start()
        if not inside and _OPENS.search(text, max(0, place - 40), place):
            inside = True
        elif inside and _CLOSES.match(text, place + 1):
            inside = False
        elif inside:
            parts += [text[last:place], b'\\"']
            last = place + 1
    return b"".join([*parts, text[last:]])
