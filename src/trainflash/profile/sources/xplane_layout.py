"""Where things stand in an XPlane protobuf: one walk over the file that reads names and skips events.

Layout: `tsl/profiler/protobuf/xplane.proto`. The names of events and stats stand behind the events that use them, hence two walks.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from trainflash.profile.sources import wire

PLANE, ERROR, WARNING, HOST = 1, 2, 3, 4  # of XSpace
NAME, LINE, EVENT_METADATA, STAT_METADATA, PLANE_STAT = 2, 3, 4, 5, 6  # of XPlane

_WINDOW = 1 << 20
LONGEST_SMALL = 64 << 20  # a name or metadata entry that is longer is passed over


@dataclass
class Metadata:
    """An XEventMetadata: `stats` as (stat id, value), a reference to a text as `Ref`."""

    name: str = ""
    display_name: str = ""
    stats: list[tuple[int, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Ref:
    """A text that stands in the stat metadata under this id."""

    id: int


@dataclass
class Plane:
    """`lines`: (first byte, one behind the last) of each XLine."""

    name: str = ""
    lines: list[tuple[int, int]] = field(default_factory=list)
    events: dict[int, Metadata] = field(default_factory=dict)
    stats: dict[int, str] = field(default_factory=dict)
    own_stats: list[tuple[int, Any]] = field(default_factory=list)


@dataclass
class Space:
    planes: list[Plane] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    cut_at: int | None = None  # first byte that belongs to nothing complete
    fault: str | None = None


class Window:
    """Reads of a file at any place, through one window."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = file.seek(0, os.SEEK_END)
        self._at, self._data = 0, b""

    def read(self, place: int, size: int) -> bytes:
        """Up to `size` bytes from `place` on."""
        if not (self._at <= place and place + size <= self._at + len(self._data)):
            self._file.seek(place)
            self._data = self._file.read(max(size, _WINDOW))
            self._at = place
        first = place - self._at
        return self._data[first : first + size]


def walk(file: BinaryIO) -> Space:
    """All of the file but its events."""
    space, window = Space(), Window(file)
    for number, first, last in _fields(window, 0, window.size, space):
        if number == PLANE:
            space.planes.append(_plane(window, first, min(last, window.size), space))
        elif last <= window.size and number in (ERROR, WARNING, HOST) and last - first <= LONGEST_SMALL:
            into = {ERROR: space.errors, WARNING: space.warnings, HOST: space.hosts}[number]
            into.append(_text(window.read(first, last - first)))
    return space


def _fields(window: Window, place: int, end: int, space: Space) -> Iterator[tuple[int, int, int]]:
    """(number, first byte, one behind the last) of each sub-message or text; what is cut is given with its true end."""
    while place < end:
        begin = place
        tag = wire.varint(window.read(place, 10), 0)
        if tag is None or tag[0] >> 3 == 0 or tag[0] & 7 not in (wire.VARINT, wire.FIXED64, wire.BYTES, wire.FIXED32):
            _stop(space, begin, end, window.size)
            return
        kind = tag[0] & 7
        place += tag[1]
        if kind == wire.FIXED64 or kind == wire.FIXED32:
            place += 8 if kind == wire.FIXED64 else 4
            continue
        value = wire.varint(window.read(place, 10), 0)
        if value is None:
            _stop(space, begin, end, window.size)
            return
        place += value[1]
        if kind == wire.VARINT:
            continue
        last = place + value[0]
        if last > end:
            _stop(space, begin, last, window.size)
        yield tag[0] >> 3, place, last
        place = last


def _stop(space: Space, place: int, end: int, size: int) -> None:
    if end >= size:
        space.cut_at = place if space.cut_at is None else max(space.cut_at, place)
    elif space.fault is None:
        space.fault = f"byte {place} is no protobuf"


def _plane(window: Window, first: int, last: int, space: Space) -> Plane:
    plane = Plane()
    for number, begin, end in _fields(window, first, last, space):
        if number == LINE:
            plane.lines.append((begin, min(end, last)))
        elif end > last or end - begin > LONGEST_SMALL:
            continue
        elif number == NAME:
            plane.name = _text(window.read(begin, end - begin))
        elif number == EVENT_METADATA:
            key, value = _entry(window.read(begin, end - begin))
            plane.events[key] = _metadata(value)
        elif number == STAT_METADATA:
            key, value = _entry(window.read(begin, end - begin))
            plane.stats[key] = next((_text(data) for field, kind, data in wire.message(value) if field == 2 and kind == wire.BYTES), "")
        elif number == PLANE_STAT:
            plane.own_stats.append(stat(window.read(begin, end - begin)))
    return plane


def _entry(data: bytes) -> tuple[int, bytes]:
    """Key and value of a map's entry."""
    key, value = 0, b""
    for number, kind, found in wire.message(data):
        if number == 1 and kind == wire.VARINT:
            key = _signed(found)
        elif number == 2 and kind == wire.BYTES:
            value = found
    return key, value


def _metadata(data: bytes) -> Metadata:
    found = Metadata()
    for number, kind, value in wire.message(data):
        if kind != wire.BYTES:
            continue
        if number == 2:
            found.name = _text(value)
        elif number == 4:
            found.display_name = _text(value)
        elif number == 5:
            found.stats.append(stat(value))
    return found


def stat(data: bytes) -> tuple[int, Any]:
    """(stat id, value) of an XStat; bytes are not kept."""
    number, value = 0, None
    for field_number, kind, found in wire.message(data):
        if field_number == 1 and kind == wire.VARINT:
            number = _signed(found)
        elif field_number == 2 and kind == wire.FIXED64:
            value = struct.unpack("<d", found.ljust(8, b"\0"))[0]
        elif field_number == 3 and kind == wire.VARINT:
            value = found
        elif field_number == 4 and kind == wire.VARINT:
            value = _signed(found)
        elif field_number == 5 and kind == wire.BYTES:
            value = _text(found)
        elif field_number == 7 and kind == wire.VARINT:
            value = Ref(_signed(found))
    return number, value


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
