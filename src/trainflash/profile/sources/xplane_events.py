"""The events of one XPlane line → blocks of columns, a few MB of the file at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trainflash.profile.sources import wire
from trainflash.profile.sources.xplane_layout import Window

CHUNK = 1 << 19  # of the file at once: its columns fit a processor's cache; an event that is longer is passed over

_EVENT = 4  # of XLine
_EVENT_TAG = (_EVENT << 3) | wire.BYTES


@dataclass
class Stats:
    """Stats of a block's events, one row each: the event's row, the stat's id, the field that holds its value (2 double, 3 unsigned,
    4 signed, 5 text, 7 reference), the value (of a text: its length) and the place of its bytes."""

    event: np.ndarray
    id: np.ndarray
    form: np.ndarray
    value: np.ndarray
    place: np.ndarray


@dataclass
class Block:
    """Events of one line, in the order of the file; times relative to the line's own."""

    metadata: np.ndarray
    offset_ps: np.ndarray
    duration_ps: np.ndarray
    stats: Stats
    data: bytes

    def texts(self, rows: np.ndarray) -> list[str]:
        """The texts of these rows of `stats`."""
        places, lengths = self.stats.place[rows].tolist(), self.stats.value[rows].tolist()
        return [self.data[place : place + length].decode("utf-8", "replace") for place, length in zip(places, lengths, strict=True)]


@dataclass
class Line:
    """What stands beside the events; complete when all blocks were read."""

    id: int = 0
    name: str = ""
    display_name: str = ""
    timestamp_ns: int = 0
    unparsed: int = 0
    aggregated: int = 0
    cut_at: int | None = None
    events: int = 0


def head(window: Window, first: int, last: int) -> Line:
    """What stands before the first event."""
    line, place, end = Line(), first, min(last, window.size)
    while place < end and window.read(place, 1) != bytes([_EVENT_TAG]):
        step = _other(window, place, end, line)
        if step is None:
            break
        place = step
    return line


def blocks(window: Window, first: int, last: int, wanted: np.ndarray, line: Line) -> Iterator[Block]:
    """The line's events; `wanted`: ids of the stats to keep. `last` may lie behind the end of a file that was cut."""
    place, end = first, min(last, window.size)
    while place < end:
        size = min(CHUNK, end - place)
        data = window.read(place, size)
        tags, read = _events(data)
        if tags:
            yield _block(data, np.asarray([*tags, read], np.int64), wanted, line)
            place += read
            continue
        step = _other(window, place, end, line)
        if step is None:
            if last >= window.size:
                line.cut_at = place
            else:
                line.unparsed += 1
            return
        place = step


def _events(data: bytes) -> tuple[list[int], int]:
    """(places of the tags, place behind the last) of the events at the begin of `data` that lie in it completely."""
    places = []
    add = places.append
    place, limit, tag = 0, len(data), _EVENT_TAG
    while place + 1 < limit and data[place] == tag:
        size = data[place + 1]
        if size < 128:
            behind = place + 2 + size
        else:
            found = wire.varint(data, place + 1)
            if found is None:
                break
            behind = found[0] + found[1]
        if behind > limit:
            break
        add(place)
        place = behind
    return places, place


def _other(window: Window, place: int, end: int, line: Line) -> int | None:
    """Take one field that is no event, or an event longer than a chunk; the place behind it, None if it is cut or faulty."""
    tag = wire.varint(window.read(place, 10), 0)
    if tag is None or tag[0] >> 3 == 0:
        return None
    number, kind = tag[0] >> 3, tag[0] & 7
    place += tag[1]
    if kind in (wire.FIXED64, wire.FIXED32):
        return place + (8 if kind == wire.FIXED64 else 4)
    if kind not in (wire.VARINT, wire.BYTES):
        return None
    value = wire.varint(window.read(place, 10), 0)
    if value is None:
        return None
    place += value[1]
    if kind == wire.VARINT:
        if number == 1:
            line.id = value[0]
        elif number == 3:
            line.timestamp_ns = value[0] if value[0] < 1 << 61 else 0
        return place
    if place + value[0] > end:
        return None
    if number in (2, 11) and value[0] < 1 << 16:
        text = window.read(place, value[0]).decode("utf-8", "replace")
        if number == 2:
            line.name = text
        else:
            line.display_name = text
    line.unparsed += number == _EVENT
    return place + value[0]


def _block(data: bytes, tags: np.ndarray, wanted: np.ndarray, line: Line) -> Block:
    """`tags`: places of the events' tags, and the place behind the last event."""
    data = data + bytes(wire.PADDING)
    buffer = wire.Bytes(data)
    count = len(tags) - 1
    starts = tags[:-1] + 1 + buffer.varints(tags[:-1] + 1)[1]
    faulty = np.zeros(count, bool)
    columns = {number: np.zeros(count, np.int64) for number in (1, 2, 3)}
    aggregated = np.zeros(count, bool)
    stats: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for found in wire.fields(buffer, starts, tags[1:], faulty):
        if found.same == _EVENT_TAG:
            stats.append((found.rows, found.place, found.place + wire.signed(found.value)))
            continue
        plain = found.type == wire.VARINT
        for number, column in columns.items():
            rows = plain & (found.number == number)
            column[found.rows[rows]] = wire.signed(found.value[rows])
        aggregated[found.rows[plain & (found.number == 5)]] = True
        sized = (found.number == _EVENT) & (found.type == wire.BYTES)
        if sized.any():
            stats.append((found.rows[sized], found.place[sized], found.place[sized] + wire.signed(found.value[sized])))
    line.events += count
    line.unparsed += int(faulty.sum())
    line.aggregated += int((aggregated & ~faulty).sum())
    far = np.int64(1) << 61
    keep = ~faulty & ~aggregated & (np.abs(columns[2]) < far) & (columns[3] >= 0) & (columns[3] < far)
    rows = np.cumsum(keep) - 1
    return Block(columns[1][keep], columns[2][keep], columns[3][keep], _stats(buffer, stats, keep, rows, wanted), data)


def _stats(buffer: wire.Bytes, found: list, keep: np.ndarray, rows: np.ndarray, wanted: np.ndarray) -> Stats:
    empty = np.empty(0, np.int64)
    if not found or not len(wanted):
        return Stats(empty, empty, empty, empty, empty)
    event, starts, ends = (np.concatenate(parts) for parts in zip(*found, strict=True))
    count = len(event)
    number, form = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    value, place = np.zeros(count, np.int64), np.zeros(count, np.int64)
    faulty = np.zeros(count, bool)
    for each in wire.fields(buffer, starts, ends, faulty):
        if each.same == 1 << 3 | wire.VARINT:
            number[each.rows] = wire.signed(each.value)
            continue
        first = each.number == 1
        number[each.rows[first]] = wire.signed(each.value[first])
        other = ~first
        into = each.rows[other]
        form[into], value[into], place[into] = each.number[other], wire.signed(each.value[other]), each.place[other]
    good = ~faulty & keep[event] & np.isin(number, wanted)
    return Stats(rows[event[good]], number[good], form[good], value[good], place[good])
