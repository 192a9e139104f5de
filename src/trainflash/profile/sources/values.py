"""Lists of Python values as a decoder gave them → typed arrays, with the rows that have one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import numpy as np

from trainflash.profile.building import Interner
from trainflash.profile.events import INTEGERS, REALS

MANY_TEXTS = 200_000  # distinct texts of one optional column; more are an id in disguise, and would fill the memory
LARGEST_NS = 1 << 61  # about 73 years; what is further off is no time
LONGEST_NS = 1 << 53  # about 104 days; no recording lasts as long

Rows = np.ndarray | None


def integers(values: list[Any]) -> tuple[Rows, np.ndarray]:
    """(rows that hold an integer, None for all; int64). Integers in quotes count; all else is passed over."""
    return _typed(values, np.int64, _integer)


def reals(values: list[Any]) -> tuple[Rows, np.ndarray]:
    """(rows that hold a finite number, None for all; float64)."""
    rows, found = _typed(values, np.float64, _real)
    finite = np.isfinite(found)
    if finite.all():
        return rows, found
    return (np.flatnonzero(finite) if rows is None else rows[finite]), found[finite]


def numbers(get: Callable[[Any], Any], holders: list) -> tuple[Rows, np.ndarray]:
    """`reals` of what `get` gives for each of `holders`, quick where all have one."""
    found = whole(get, holders, REALS)
    return reals([get(holder) for holder in holders]) if found is None else (None, found)


def whole(get: Callable[[Any], Any], holders: list, how: str) -> np.ndarray | None:
    """What `get` gives for each of `holders`, as INTEGERS or REALS; None unless each has one. No list is made in between."""
    try:
        found = np.fromiter(map(get, holders), np.int64 if how == INTEGERS else np.float64, len(holders))
    except (TypeError, ValueError, OverflowError):
        return None
    return found if how == INTEGERS or np.isfinite(found).all() else None


def _typed(values: list[Any], dtype: type, one: Callable[[Any], Any]) -> tuple[Rows, np.ndarray]:
    rows = None
    if None in values:
        rows = np.asarray([row for row, value in enumerate(values) if value is not None], np.int64)
        values = [value for value in values if value is not None]
    try:
        return rows, np.fromiter(values, dtype, len(values))
    except (TypeError, ValueError, OverflowError):
        read = [one(value) for value in values]
    kept = [row for row, value in enumerate(read) if value is not None]
    array = np.fromiter([read[row] for row in kept], dtype, len(kept))
    places = np.asarray(kept, np.int64)
    return (places if rows is None else rows[places]), array


def _integer(value: Any) -> int | None:
    number = _real(value)
    if number is None or abs(number) >= 1 << 63:
        return None
    try:
        exact = int(value)
    except (TypeError, ValueError):
        exact = int(number)
    return exact if -(1 << 63) <= exact < 1 << 63 else None


def _real(value: Any) -> float | None:
    if isinstance(value, str) and len(value) > 40:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def nanoseconds(times_us: np.ndarray, largest_ns: int = LARGEST_NS) -> tuple[np.ndarray, np.ndarray]:
    """(int64 ns, whether each is a possible time). Whole microseconds are exact, also where a float of nanoseconds would not be."""
    possible = np.abs(times_us) < largest_ns // 1000
    if not possible.all():
        times_us = np.where(possible, times_us, 0.0)
    whole = np.floor(times_us)
    return whole.astype(np.int64) * 1000 + np.rint((times_us - whole) * 1000).astype(np.int64), possible


def exact_nanoseconds(texts: Iterable[bytes]) -> list[int | None]:
    """Microseconds as decimal text → ns, without the rounding of floats; None for what is no number."""
    return [_exact(text) for text in texts]


def _exact(text: bytes) -> int | None:
    whole, _, fraction = text.strip(b'"').partition(b".")
    try:
        if len(text) <= 40 and b"e" not in text.lower():
            number = int(whole + (fraction + b"000")[:3]) + (fraction[3:4] >= b"5") * (-1 if whole.startswith(b"-") else 1)
        else:
            number = round(float(text) * 1000)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < LARGEST_NS else None


class Texts(dict):
    """Value of an optional column → id of its text in `strings`, -1 once there are too many different ones."""

    def __init__(self, strings: Interner) -> None:
        super().__init__()
        self._strings = strings
        self.left_out = 0

    def __missing__(self, value: Any) -> int:
        if len(self) >= MANY_TEXTS:
            self.left_out += 1
            return -1
        self[value] = number = self._strings[_canonical(value)]
        return number


def texts(values: list[Any], ids: Texts) -> tuple[Rows, np.ndarray]:
    """(rows that hold a text, None for all; ids)."""
    rows = None
    if None in values:
        rows = np.asarray([row for row, value in enumerate(values) if value is not None], np.int64)
        values = [value for value in values if value is not None]
    try:
        found = np.fromiter(map(ids.__getitem__, values), np.int32, len(values))
    except TypeError:  # a list or an object, where a text was expected
        found = np.fromiter([ids[_as_json(value)] for value in values], np.int32, len(values))
    return _known(rows, found)


def json_texts(values: list[msgspec.Raw | None], ids: Texts) -> tuple[Rows, np.ndarray]:
    """The same for JSON values, by their text."""
    rows = None
    if None in values:
        rows = np.asarray([row for row, value in enumerate(values) if value is not None], np.int64)
        values = [value for value in values if value is not None]
    return _known(rows, np.fromiter(map(ids.__getitem__, map(bytes, values)), np.int32, len(values)))


def _known(rows: Rows, found: np.ndarray) -> tuple[Rows, np.ndarray]:
    known = found >= 0
    if known.all():
        return rows, found
    return (np.flatnonzero(known) if rows is None else rows[known]), found[known]


def _canonical(value: Any) -> str:
    if isinstance(value, bytes):
        try:
            value = msgspec.json.decode(value)
        except (ValueError, RecursionError):
            return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else _as_json(value)


def _as_json(value: Any) -> str:
    """One text per value, however the file spaced it."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_as_json, value)) + "]"
    return msgspec.json.encode(value).decode()
