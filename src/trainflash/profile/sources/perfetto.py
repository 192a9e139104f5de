"""Perfetto's protobuf traces (`.pftrace`, `.perfetto-trace`), as far as they hold track events → `Trace`.

Read are slices, instants and counters of the track event API, their tracks, interned names, incremental clocks and compressed packets; what
rocprofv3 writes so (`--output-format pftrace`) is known as calls, kernels and copies. A system trace's scheduling events are passed over.
Format: `perfetto_trace.proto`; numbers of fields below are those of the messages named beside them.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainflash.errors import UsageError
from trainflash.profile.building import TraceBuilder
from trainflash.profile.categories import kind_of
from trainflash.profile.events import SIDE_COLUMNS, Identity, Kind, Quality, Trace, TrackKind
from trainflash.profile.sources import amd_names
from trainflash.profile.sources.kineto_header import rank_in_name
from trainflash.profile.sources.values import LARGEST_NS
from trainflash.profile.sources.wire import BYTES, message, signed, varint

MEND = "name a trace that Perfetto's track events were written to"
_PACKET = 0x0A  # Trace.packet
_CLEARED = 1  # TracePacket.sequence_flags: what was interned before is forgotten
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4  # TrackEvent.Type
_FIRST_OF_SEQUENCE = 64  # clocks from here on are a sequence's own
_LONGEST = 1 << 30  # bytes that a compressed packet may hold
_PLACE = re.compile(r"(?:AGENT|GPU)\D{0,12}\[(\d+)\](?:.*?(?:STREAM|QUEUE) \[(\d+)\])?")
_CORRELATION = frozenset({"corr_id", "correlation", "correlation_id"})


def seems(first: bytes) -> bool:
    """Whether these bytes may begin such a trace: a packet with a field that packets begin with."""
    if first[:1] != b"\n":
        return False
    length = varint(first, 1)
    if length is None or not length[0]:
        return False
    tag = varint(first, length[1])
    return tag is not None and (tag[0] >> 3) in (6, 8, 10, 11, 12, 13, 33, 36, 41, 42, 50, 58, 59, 60, 87) and tag[0] & 7 in (0, BYTES)


def read(chunks: Iterable[bytes], name: str, cut_short: Iterable[str] = (), columns: Collection[str] = SIDE_COLUMNS) -> Trace:
    """The trace in these bytes. Raises `UsageError` where they hold no track event."""
    data = b"".join(chunks)
    reader = _Reader(name, columns)
    cut_at = None
    for packet, end in _packets(data):
        if packet is None:
            cut_at = end
        else:
            reader.take(packet)
    if not reader.total:
        what = "holds no track events" if reader.packets else "is no Perfetto trace: it holds no packets"
        raise UsageError(f"{name} {what}", MEND)
    return reader.finish(list(cut_short), cut_at)


def _packets(data: bytes) -> Iterator[tuple[bytes | None, int]]:
    """(each packet, the place behind it); (None, the place of the first byte that belongs to none) where the bytes end too early."""
    place = 0
    while place < len(data):
        length = varint(data, place + 1) if data[place] == _PACKET else None
        if length is None or length[1] + length[0] > len(data):
            yield None, place
            return
        begin, place = length[1], length[1] + length[0]
        yield data[begin:place], place


@dataclass
class _Sequence:
    """What the packets of one writer have in common."""

    names: dict[tuple[int, int], str] = field(default_factory=dict)  # (kind of name, iid) → text
    clock: int | None = None  # of packets that name none
    track: int = 0
    now: dict[int, int] = field(default_factory=dict)  # incremental clock → its last time, ns
    unit: dict[int, int] = field(default_factory=dict)


@dataclass
class _Row:
    """A track's descriptor."""

    name: str = ""
    parent: int = 0
    process: int | None = None
    process_name: str | None = None
    thread: int | None = None
    is_counter: bool = False


@dataclass
class _Columns:
    """Events of one kind, column by column."""

    t_ns: list[int] = field(default_factory=list)
    track: list[int] = field(default_factory=list)
    name: list[int] = field(default_factory=list)
    category: list[int] = field(default_factory=list)
    ends: list[bool] = field(default_factory=list)
    correlation: list[int | None] = field(default_factory=list)

    def add(self, t_ns: int, track: int, name: int, category: int, ends: bool, correlation: int | None) -> None:
        for column, value in zip(vars(self).values(), (t_ns, track, name, category, ends, correlation), strict=True):
            column.append(value)


_CATEGORY, _NAME, _KEY = 1, 2, 3  # InternedData: event_categories, event_names, debug_annotation_names


class _Reader:
    def __init__(self, name: str, columns: Collection[str]) -> None:
        self.name = name
        self.builder = TraceBuilder("perfetto", name, columns)
        self.sequences: dict[int, _Sequence] = defaultdict(_Sequence)
        self.rows: dict[int, _Row] = {}
        self.slices, self.instants = _Columns(), _Columns()
        self.samples: list[tuple[int, int, float]] = []
        self.packets = self.total = self.without_time = self.dropped = 0
        self.faults = 0

    def take(self, packet: bytes) -> None:
        """One TracePacket."""
        self.packets += 1
        found: dict[int, Any] = {number: value for number, _, value in message(packet)}
        if 50 in found:  # compressed_packets
            self._unpacked(found[50])
            return
        sequence = self.sequences[_whole(found.get(10))]
        if _whole(found.get(13)) & _CLEARED:
            sequence.names.clear()
        self.dropped += _whole(found.get(42))
        for number, of in ((59, self._defaults), (12, self._interned), (6, self._clocks)):
            if isinstance(found.get(number), bytes):
                of(sequence, found[number])
        if isinstance(found.get(60), bytes):
            self._describe(found[60])
        if isinstance(found.get(11), bytes):
            self.total += 1
            time = self._time(sequence, found)
            if time is None or abs(time) >= LARGEST_NS:
                self.without_time += 1
            else:
                self._event(sequence, time, found[11])
        elif 8 in found and sequence.now:
            self._time(sequence, found)  # an incremental clock goes on with every packet

    def _unpacked(self, packed: Any) -> None:
        try:
            unpacker = zlib.decompressobj()
            data = unpacker.decompress(packed, _LONGEST)
        except (zlib.error, TypeError):
            self.faults += 1
            return
        for packet, _ in _packets(data):
            if packet is None:
                self.faults += 1
            else:
                self.take(packet)

    def _defaults(self, sequence: _Sequence, data: bytes) -> None:
        for number, _, value in message(data):
            if number == 58:
                sequence.clock = _whole(value)
            elif number == 11 and isinstance(value, bytes):
                sequence.track = next((_whole(track) for key, _, track in message(value) if key == 11), 0)

    def _interned(self, sequence: _Sequence, data: bytes) -> None:
        for number, _, value in message(data):
            if number in (_CATEGORY, _NAME, _KEY) and isinstance(value, bytes):
                entry = {key: part for key, _, part in message(value)}
                sequence.names[number, _whole(entry.get(1))] = _text(entry.get(2))

    def _clocks(self, sequence: _Sequence, data: bytes) -> None:
        """ClockSnapshot: where the sequence's own clocks begin."""
        for number, _, value in message(data):
            if number == 1 and isinstance(value, bytes):
                clock = {key: _whole(part) for key, _, part in message(value)}
                if clock.get(1, 0) >= _FIRST_OF_SEQUENCE:
                    sequence.unit[clock[1]] = clock.get(4) or 1
                    if clock.get(3):  # is_incremental
                        sequence.now[clock[1]] = clock.get(2, 0) * sequence.unit[clock[1]]

    def _time(self, sequence: _Sequence, found: dict[int, Any]) -> int | None:
        if 8 not in found:
            return None
        clock = _whole(found[58]) if 58 in found else sequence.clock or 0
        time = _whole(found[8]) * sequence.unit.get(clock, 1)
        if clock in sequence.now:
            time += sequence.now[clock]
            sequence.now[clock] = time
        return time

    def _describe(self, data: bytes) -> None:
        """TrackDescriptor."""
        found = {number: value for number, _, value in message(data)}
        row = self.rows.setdefault(_whole(found.get(1)), _Row())
        row.name = _text(found.get(2) or found.get(10)) or row.name
        row.parent = _whole(found.get(5)) or row.parent
        row.is_counter |= 8 in found
        for number, name in ((3, 6), (4, 5)):  # ProcessDescriptor.process_name, ThreadDescriptor.thread_name
            if isinstance(found.get(number), bytes):
                told = {key: value for key, _, value in message(found[number])}
                row.process = _whole(told.get(1))
                if number == 3:
                    row.process_name = _text(told.get(name)) or None
                else:
                    row.thread = _whole(told.get(2))
                    row.name = row.name or _text(told.get(name))

    def _event(self, sequence: _Sequence, time: int, data: bytes) -> None:
        """TrackEvent."""
        kind, track, name, correlation, value = 0, sequence.track, "", None, None
        categories: list[str] = []
        for number, wire, part in message(data):
            if number == 9:
                kind = _whole(part)
            elif number == 11:
                track = _whole(part)
            elif number == 23:
                name = _text(part)
            elif number == 10:
                name = sequence.names.get((_NAME, _whole(part)), "")
            elif number == 22:
                categories.append(_text(part))
            elif number == 3 and wire != BYTES:
                categories.append(sequence.names.get((_CATEGORY, _whole(part)), ""))
            elif number == 4 and isinstance(part, bytes):
                correlation = self._correlation(sequence, part) if correlation is None else correlation
            elif number == 30:
                value = float(signed(np.asarray([_whole(part)], np.uint64))[0])
            elif number == 44 and isinstance(part, bytes):
                value = float(np.frombuffer(part, "<f8")[0])
        if kind == _COUNTER and value is not None:
            self.samples.append((track, time, value))
            return
        ids = self.builder.strings
        into = self.instants if kind == _INSTANT else self.slices if kind in (_BEGIN, _END) else None
        if into is not None:
            into.add(time, track, ids[name], ids[categories[0] if categories else ""], kind == _END, correlation)

    @staticmethod
    def _correlation(sequence: _Sequence, data: bytes) -> int | None:
        """The number in a DebugAnnotation that joins a call and what it launched."""
        found = {number: value for number, _, value in message(data)}
        key = _text(found[10]) if 10 in found else sequence.names.get((_KEY, _whole(found.get(1))), "")
        value = found.get(3, found.get(4))
        return value if key in _CORRELATION and isinstance(value, int) and value < 1 << 62 else None

    # The end

    def finish(self, notes: list[str], cut_at: int | None) -> Trace:
        """The trace of all packets that were taken."""
        tracks = {uuid: self._track(uuid) for uuid in {*self.slices.track, *self.instants.track}}
        self._add_slices(tracks)
        self._add_instants(tracks)
        for uuid, time, value in self.samples:
            row = self.rows.get(uuid, _Row())
            self.builder.add_sample(self._process(uuid)[0], row.name or "counter", time, value)
        if self.dropped:
            notes.append("packets were lost where the tracer says so: its buffers were full")
        quality = Quality(
            truncated=cut_at is not None,
            cut_at=cut_at,
            total_events=self.total,
            unparsed=self.faults,
            without_time=self.without_time,
            notes=tuple(notes),
        )
        rank = rank_in_name(self.name)
        return self.builder.finish(Identity(rank, rank_from=None if rank is None else "file name"), {}, quality)

    def _add_slices(self, tracks: dict[int, int]) -> None:
        found = self.slices
        if not found.t_ns:
            return
        texts = self.builder.strings.texts
        told = {pair: self._named(*(texts[number] for number in pair)) for pair in set(zip(found.category, found.name, strict=True))}
        rows = [told[pair] for pair in zip(found.category, found.name, strict=True)]
        known = [row for row, value in enumerate(found.correlation) if value is not None]
        side = {"correlation": (np.asarray(known, np.int64), np.asarray([found.correlation[row] for row in known], np.int64))}
        steps = [row for row, (_, _, step) in enumerate(rows) if step is not None]
        side["step"] = (np.asarray(steps, np.int64), np.asarray([rows[row][2] for row in steps], np.int64))
        self.builder.add_ends(
            side,
            t_ns=np.asarray(found.t_ns, np.int64),
            name=np.asarray([row[0] for row in rows], np.int32),
            category=np.asarray(found.category, np.int32),
            track=np.asarray([tracks[uuid] for uuid in found.track], np.int32),
            kind=np.asarray([row[1] for row in rows], np.int8),
            ends=np.asarray(found.ends, bool),
        )

    def _named(self, category: str, name: str) -> tuple[int, Kind, int | None]:
        """(id of the name, kind, number of the step that it marks)."""
        kind = amd_names.KINDS.get(category) or kind_of(category, name)
        if kind is Kind.MEMCPY and not name.startswith("Mem"):
            name = amd_names.copy(name)
        step = None
        if kind in (Kind.OTHER, Kind.ANNOTATION):
            said = amd_names.marker(name)
            kind, name, step = said.kind, said.name, said.step
        return self.builder.strings[name], kind, step

    def _add_instants(self, tracks: dict[int, int]) -> None:
        found = self.instants
        if found.t_ns:
            self.builder.add_marks(
                t_ns=np.asarray(found.t_ns, np.int64),
                name=np.asarray(found.name, np.int32),
                category=np.asarray(found.category, np.int32),
                track=np.asarray([tracks[uuid] for uuid in found.track], np.int32),
            )

    def _process(self, uuid: int) -> tuple[str, str | None]:
        """(pid, name) of the process that a track belongs to."""
        for _ in range(len(self.rows) + 1):
            row = self.rows.get(uuid)
            if row is None:
                break
            if row.process is not None:
                named = next((each.process_name for each in self.rows.values() if each.process == row.process and each.process_name), None)
                return str(row.process), row.process_name or named
            if not row.parent:
                break
            uuid = row.parent
        return "0", None

    def _track(self, uuid: int) -> int:
        row = self.rows.get(uuid, _Row())
        process, process_name = self._process(uuid)
        place = _PLACE.search(row.name) if row.thread is None else None
        thread = str(row.thread) if row.thread is not None else row.name or str(uuid)
        track = self.builder.track(process, thread, TrackKind.STREAM if place else TrackKind.HOST)
        facts = {"device": int(place[1]), "stream": int(place[2]) if place[2] else None} if place else {}
        self.builder.describe(track, process_name=process_name, thread_name=row.name or None, **facts)
        return track


def _whole(value: Any) -> int:
    """A varint, or a fixed integer of 4 or 8 bytes; 0 for what is none."""
    return value if isinstance(value, int) else int.from_bytes(value, "little") if isinstance(value, bytes) and len(value) <= 8 else 0


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
