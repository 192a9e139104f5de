"""Documents of bounded length: what is too long is cut where it is longest, and the whole lies in a file that the answer names."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMIT = 10_000  # characters of an answer's JSON, what an assistant's context takes without loss
LEAST_TEXT = 200
KEPT = 500  # files of whole answers; older ones go
CUT = "…"
_ROOM = 600  # for the names of what was cut, and the path


def fit(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """`document` as it may be sent: clean text, at most `LIMIT` characters. What was cut stands in `cut`, the whole lies in `whole`."""
    plain = json.loads(json.dumps(document, allow_nan=False, default=str))
    sent = _clean(plain)
    if _length(sent) <= LIMIT:
        return sent
    cut: dict[str, None] = {}
    while _length(sent) > LIMIT - _ROOM:
        where = _shorten(sent)
        if where is None:
            break
        cut[where] = None
    whole = str(_keep(plain, folder))
    if _length(sent) > LIMIT - _ROOM:
        return {"schema": sent["schema"], "status": sent["status"], "whole": whole, "cut": ["everything"]}
    names = list(cut)
    return {**sent, "whole": whole, "cut": names[:8] + [f"and {len(names) - 8} more"] * (len(names) > 8)}


def _length(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _clean(value: Any) -> Any:
    """Text that every encoding of the wire takes: bytes that are no UTF-8 are shown as such."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") if not value.isascii() else value
    if isinstance(value, dict):
        return {str(_clean(name)): _clean(inner) for name, inner in value.items()}
    return [_clean(inner) for inner in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class _Piece:
    """A text or list that can be halved, and how much of the document's length is its own: of a list all but its largest element."""

    own: int
    place: str
    holder: Any
    name: Any


def _shorten(document: dict[str, Any]) -> str | None:
    """Halve what has most length of its own; its place, or None where nothing is left to cut."""
    pieces: list[_Piece] = []
    _measure(document, "", pieces)
    if not pieces:
        return None
    most = max(pieces, key=lambda piece: piece.own)
    value = most.holder[most.name]
    most.holder[most.name] = value[: len(value) // 2] + CUT if isinstance(value, str) else value[: (len(value) + 1) // 2]
    return most.place


def _measure(value: Any, place: str, pieces: list[_Piece]) -> int:
    """Length of `value`, about; the pieces inside it are added."""
    if isinstance(value, str):
        return len(value) + 2
    if not isinstance(value, dict | list):
        return 8
    sizes = []
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        where = f"{place}.{name}" if place else str(name)
        size = _measure(inner, where, pieces)
        sizes.append(size)
        if isinstance(inner, str) and len(inner) > LEAST_TEXT:
            pieces.append(_Piece(size, where, value, name))
        elif isinstance(inner, list) and len(inner) > 1:
            pieces.append(_Piece(size - max(_measure(each, "", []) for each in inner), where, value, name))
    return sum(sizes) + 4 * len(sizes)


def _keep(document: dict[str, Any], folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)[:-KEPT]:
        old.unlink(missing_ok=True)
    name = str(document.get("schema", "answer")).partition(".")[0]
    handle, path = tempfile.mkstemp(dir=folder, prefix=f"{name}-", suffix=".json")
    with os.fdopen(handle, "w", encoding="ascii") as file:
        json.dump(document, file, indent=1)
    return Path(path)
