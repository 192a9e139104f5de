"""Protobuf's wire format, many messages at once: varints of a whole column are decoded by a few array operations.

Format: https://protobuf.dev/programming-guides/encoding. All functions are safe for any bytes: what reaches beyond a message's end makes
that message faulty, and is never read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

PADDING = 24  # bytes behind the last message that must be readable
MOST_FIELDS = 512  # fields of one message that are looked at; more are no trace but an attack
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

_HIGH = np.uint64(0x8080808080808080)
_ONE = np.uint64(1)


class Bytes:
    """A buffer with `PADDING` behind it, readable as bytes and as 8-byte words at any place."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.length = len(data) - PADDING
        self.byte = np.frombuffer(data, np.uint8)
        self._words = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))

    def words(self, places: np.ndarray) -> np.ndarray:
        return self._words[places]

    def varints(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(uint64 values, int64 lengths in bytes) of the varints that begin at `places`; length 11 where none ends in time."""
        first = self.byte[places]
        if (first < 128).all():
            return first.astype(np.uint64), np.ones(len(first), np.int64)
        words = self._words[places]
        ends = ~words & _HIGH
        lowest = ends & (~ends + _ONE)
        values = _compact(words & (lowest - _ONE))
        lengths = _length_of(lowest)
        long = np.flatnonzero(ends == 0)
        if len(long):
            tail = self._words[places[long] + 8]
            first, second = tail & np.uint64(0xFF), (tail >> np.uint64(8)) & np.uint64(0xFF)
            low = _compact(words[long] & ~_HIGH)
            ninth = low | ((first & np.uint64(0x7F)) << np.uint64(56))
            values[long] = np.where(first < 128, ninth, ninth | ((second & _ONE) << np.uint64(63)))
            lengths[long] = np.where(first < 128, 9, np.where(second < 128, 10, 11))
        return values, lengths


def _compact(words: np.ndarray) -> np.ndarray:
    """The 7-bit groups of a varint's bytes side by side."""
    words = words & np.uint64(0x7F7F7F7F7F7F7F7F)
    words = (words & np.uint64(0x007F007F007F007F)) | ((words & np.uint64(0x7F007F007F007F00)) >> _ONE)
    words = (words & np.uint64(0x00003FFF00003FFF)) | ((words & np.uint64(0x3FFF00003FFF0000)) >> np.uint64(2))
    return (words & np.uint64(0x000000000FFFFFFF)) | ((words & np.uint64(0x0FFFFFFF00000000)) >> np.uint64(4))


_LENGTHS = np.zeros(67, np.int64)  # place of the ending byte's high bit, modulo 67 (a generator of all powers of two) → length
_LENGTHS[[pow(2, 8 * number + 7, 67) for number in range(8)]] = range(1, 9)


def _length_of(lowest: np.ndarray) -> np.ndarray:
    return _LENGTHS[(lowest % np.uint64(67)).astype(np.int64)]


@dataclass
class Field:
    """One field of many messages: which messages (rows), its number, wire type, value (of BYTES: its length) and place of its bytes.

    `same`: the tag that all of them have, None if they differ; messages of one kind mostly agree, and are then handled at once.
    """

    rows: np.ndarray
    number: np.ndarray
    type: np.ndarray
    value: np.ndarray
    place: np.ndarray
    same: int | None = None


def fields(buffer: Bytes, starts: np.ndarray, ends: np.ndarray, faulty: np.ndarray) -> Iterator[Field]:
    """The first field of all messages, then the second of those that have one, …; marks in `faulty` those that are no messages."""
    rows = np.flatnonzero(starts < ends)
    places, limit = starts[rows], ends[rows]
    for _ in range(MOST_FIELDS):
        if not len(rows):
            return
        tags = buffer.byte[places]
        same = int(tags[0]) if (tags == tags[0]).all() else None
        if same is not None and 8 <= same < 128 and same & 7 in (VARINT, BYTES):
            values, lengths = buffer.varints(places + 1)
            begins = places + 1
            after = begins + lengths
            if same & 7 == BYTES:
                begins = after
                after = after + _sizes(values)
            good = after <= limit
            good &= lengths <= 10
            number, kind = np.broadcast_to(same >> 3, len(rows)), np.broadcast_to(same & 7, len(rows))
        else:
            same = None
            number, kind, values, begins, after, good = _mixed(buffer, places, tags)
            good &= after <= limit
        if not good.all():
            faulty[rows[~good]] = True
            columns = (rows, number, kind, values, begins, after, limit)
            rows, number, kind, values, begins, after, limit = (column[good] for column in columns)
        yield Field(rows, number, kind, values, begins, same)
        on = after < limit
        if on.all():
            places = after
        else:
            rows, places, limit = rows[on], after[on], limit[on]
    faulty[rows] = True


def _mixed(buffer: Bytes, places: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, ...]:
    """(number, wire type, value, place of the bytes, place behind, whether it is a field) where messages differ."""
    tags = first.astype(np.int64)
    places = places + 1
    long = np.flatnonzero(tags >= 128)
    if len(long):
        values, lengths = buffer.varints(places[long] - 1)
        tags[long] = _sizes(values)
        places[long] += lengths - 1
    kind = tags & 7
    places = np.minimum(places, buffer.length)
    values, lengths = buffer.varints(places)
    sized = kind == BYTES
    wide, narrow = kind == FIXED64, kind == FIXED32
    values[wide] = buffer.words(places[wide])
    lengths[wide], lengths[narrow] = 8, 4
    good = (lengths <= 10) & (tags >= 8) & ((kind == VARINT) | sized | wide | narrow)
    after = places + lengths + np.where(sized, _sizes(values), 0)
    return tags >> 3, kind, values, np.where(sized, places + lengths, places), after, good


def _sizes(values: np.ndarray) -> np.ndarray:
    """Lengths that lie beyond any file stay so, without an overflow."""
    return np.minimum(values, np.uint64(1 << 40)).astype(np.int64)


def varint(data: bytes, place: int) -> tuple[int, int] | None:
    """(value, place behind it) of one varint; None if it does not end within the data or 10 bytes."""
    value = shift = 0
    for place in range(place, min(place + 10, len(data))):  # noqa: B020
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, place + 1
        shift += 7
    return None


def message(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """(number, wire type, value) of each field of one message; ends at the first fault."""
    place = 0
    while place < len(data):
        tag = varint(data, place)
        if tag is None:
            return
        number, kind = tag[0] >> 3, tag[0] & 7
        place = tag[1]
        if kind == VARINT:
            found = varint(data, place)
            if found is None:
                return
            value, place = found
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
            if place + size > len(data):
                return
            value, place = data[place : place + size], place + size
        elif kind == BYTES:
            found = varint(data, place)
            if found is None or found[1] + found[0] > len(data):
                return
            value, place = data[found[1] : found[1] + found[0]], found[1] + found[0]
        else:
            return
        yield number, kind, value


def signed(values: np.ndarray) -> np.ndarray:
    """uint64 as the int64 of the same bits."""
    return values.astype(np.uint64, copy=False).view(np.int64)
