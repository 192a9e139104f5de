"""XPlane protobufs (JAX, TensorFlow, PyTorch/XLA) → `Trace`, read as a stream: neither TensorFlow nor a protobuf library is needed.

Times in the file are picoseconds after a line's begin; both ends of an event are rounded down to ns, so that what nests stays nested.
Planes are processes, lines are threads; stats of an event and of its metadata become side columns.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable
from typing import Any, BinaryIO

import numpy as np

from trainflash.errors import UsageError
from trainflash.profile.building import TraceBuilder
from trainflash.profile.device_lines import Line as RowKinds
from trainflash.profile.device_lines import kind_by_name, line_of
from trainflash.profile.events import INTEGERS, REALS, SIDE_COLUMNS, TEXTS, Identity, Kind, Quality, Trace, TrackKind
from trainflash.profile.sources import values
from trainflash.profile.sources.kineto_header import rank_in_name
from trainflash.profile.sources.xplane_events import Block, Line, blocks, head
from trainflash.profile.sources.xplane_layout import Metadata, Plane, Ref, Space, Window, walk
from trainflash.profile.sources.xplane_stats import COLUMN_OF_STAT, DETAILS, NO_SCOPES, details

_KEPT_TEXT = 4000  # characters of one value in the provenance
Side = dict[str, tuple[np.ndarray | None, np.ndarray]]


def read(chunks: Iterable[bytes], name: str, cut_short: Iterable[str] = (), columns: Collection[str] = SIDE_COLUMNS) -> Trace:
    """The trace in this stream, which is kept in a temporary file while it is read twice."""
    with tempfile.TemporaryFile(prefix="trainflash-xplane-") as file:
        for chunk in chunks:
            file.write(chunk)
        return read_file(file, name, cut_short, columns)


def read_file(file: BinaryIO, name: str, cut_short: Iterable[str] = (), columns: Collection[str] = SIDE_COLUMNS) -> Trace:
    """The trace in this file. Raises `UsageError` where it holds no plane."""
    space = walk(file)
    if not any(plane.name or plane.lines for plane in space.planes):
        raise UsageError(f"{name} is no XPlane protobuf: it holds no plane", "name an .xplane.pb that the profiler finished writing")
    return _Reader(Window(file), name, space, columns).read(list(cut_short))


class _Reader:
    def __init__(self, window: Window, name: str, space: Space, columns: Collection[str]) -> None:
        self.window, self.name, self.space = window, name, space
        self.builder = TraceBuilder("xplane", name, columns)
        self.texts: dict[str, values.Texts] = {}
        self.unparsed = self.aggregated = self.total = 0
        self.cut_at = space.cut_at
        self.process_names: set[str] = set()

    def read(self, cut_short: list[str]) -> Trace:
        for plane in self.space.planes:
            self._plane(plane)
        notes = cut_short + self.space.errors + self.space.warnings
        if self.aggregated:
            notes.append(f"{self.aggregated} aggregated events without a time of their own left out")
        if self.space.fault:
            notes.append(f"part of the file could not be read: {self.space.fault}")
        cut_at = self.cut_at
        quality = Quality(
            truncated=cut_at is not None or bool(cut_short),
            cut_at=cut_at,
            total_events=self.total,
            unparsed=self.unparsed + (self.space.fault is not None),
            notes=tuple(notes),
        )
        host = self.space.hosts[0] if self.space.hosts else None
        rank = rank_in_name(self.name)
        identity = Identity(rank=rank, rank_from=None if rank is None else "file name", host=host)
        return self.builder.finish(identity, self._provenance(), quality)

    def _provenance(self) -> dict[str, Any]:
        """Stats of planes (devices, task, environment); times of the recording are left out."""
        found: dict[str, Any] = {}
        for plane in self.space.planes:
            stats = {plane.stats.get(number, str(number)): _plain(value, plane) for number, value in plane.own_stats}
            stats = {key: value for key, value in sorted(stats.items()) if value is not None and not key.startswith("profile_st")}
            if stats:
                found.setdefault("planes", {})[plane.name] = stats
        if self.space.hosts:
            found["hostnames"] = sorted(self.space.hosts)
        return found

    def _plane(self, plane: Plane) -> None:
        process = plane.name
        while process in self.process_names:
            process += "'"
        self.process_names.add(process)
        heads = [head(self.window, *place) for place in plane.lines]
        streams = any(_name(line).startswith("Stream #") for line in heads)
        names = _Names(self, plane)
        for place, first in zip(plane.lines, heads, strict=True):
            self._line(plane, process, place, first, names, streams)

    def _line(self, plane: Plane, process: str, place: tuple[int, int], first: Line, names: _Names, streams: bool) -> None:
        """Events of one line. Its time stands before them in every file that a profiler wrote; where it does not, they wait for it."""
        kinds = line_of(plane.name, _name(first), streams)
        line, waiting = Line(), []
        for block in blocks(self.window, *place, names.wanted, line):
            side = names.columns(block, kinds.device if kinds else None)
            block.stats = block.data = None
            if first.timestamp_ns:
                self._add(plane, process, first, kinds, names, block, side)
            else:
                waiting.append((block, side))
        for block, side in waiting:
            self._add(plane, process, line, kinds, names, block, side)
        self.total += line.events
        self.unparsed += line.unparsed
        self.aggregated += line.aggregated
        if line.cut_at is not None:
            self.cut_at = line.cut_at if self.cut_at is None else max(self.cut_at, line.cut_at)

    def _add(self, plane: Plane, process: str, line: Line, kinds: RowKinds | None, names: _Names, block: Block, side: Side) -> None:
        track_kind = kinds.track if kinds else TrackKind.HOST
        track = self.builder.track(process, str(line.id), track_kind)
        facts = {"device": kinds.device, "stream": kinds.stream} if kinds else {}
        self.builder.describe(track, process_name=plane.name, thread_name=_name(line), **facts)
        index = names.index(block.metadata)
        start = line.timestamp_ns + block.offset_ps // 1000
        end = line.timestamp_ns + (block.offset_ps + block.duration_ps) // 1000
        count = len(start)
        usual = kinds.kind if kinds else Kind.OTHER
        kind = np.full(count, usual, np.int8) if usual is not None else names.kinds(track_kind)[index]
        if usual is Kind.DEVICE_STEP and "step" not in side:
            side["step"] = names.steps(index)
        category = np.full(count, self.builder.strings[""], np.int32)
        columns = {"name": names.ids[index], "category": category, "track": np.full(count, track, np.int32), "kind": kind}
        self.builder.add_events(side, start_ns=start, duration_ns=end - start, **columns)

    def text_ids(self, column: str) -> values.Texts:
        return self.texts.setdefault(column, values.Texts(self.builder.strings))


class _Names:
    """What the metadata of one plane say about its events, as tables by the place of the metadata id."""

    def __init__(self, reader: _Reader, plane: Plane) -> None:
        self._reader, self._plane = reader, plane
        self._keys = np.asarray(sorted(plane.events), np.int64)
        metadata = [plane.events[key] for key in self._keys.tolist()] + [Metadata()]
        self._texts = [each.display_name or each.name for each in metadata]
        self._texts[-1] = "(unnamed)"  # ids without metadata: their names stand behind the cut of a file
        self.ids = np.asarray([reader.builder.strings[text] for text in self._texts], np.int32)
        self._kinds: dict[TrackKind, np.ndarray] = {}
        read = reader.builder.read
        known = {number: name for number, name in plane.stats.items() if COLUMN_OF_STAT.get(name) in read or name in DETAILS}
        order = {name: place for place, name in enumerate((*COLUMN_OF_STAT, *DETAILS))}
        self._stats = sorted(known.items(), key=lambda item: (order[item[1]], item[0]))
        self.wanted = np.asarray([number for number, _ in self._stats], np.int64)
        self._tables = self._metadata_tables(metadata)

    def index(self, metadata: np.ndarray) -> np.ndarray:
        """Place of each metadata id; the last place for an unknown one."""
        if not len(self._keys):
            return np.zeros(len(metadata), np.int64)
        place = np.minimum(np.searchsorted(self._keys, metadata), len(self._keys) - 1)
        return np.where(self._keys[place] == metadata, place, len(self._keys))

    def kinds(self, track: TrackKind) -> np.ndarray:
        if track not in self._kinds:
            self._kinds[track] = np.asarray([kind_by_name(track, text) for text in self._texts], np.int8)
        return self._kinds[track]

    def steps(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(rows whose name is a number, that number)."""
        numbers = np.asarray([int(text) if text.isdecimal() and len(text) < 18 else -1 for text in self._texts], np.int64)[index]
        rows = np.flatnonzero(numbers >= 0)
        return rows, numbers[rows]

    def columns(self, block: Block, device: int | None) -> Side:
        """Side columns of a block: its own stats first, then those of its metadata."""
        side: Side = {}
        for number, name in self._stats:
            rows = np.flatnonzero(block.stats.id == number)
            if len(rows):
                order = np.argsort(block.stats.event[rows], kind="stable")
                rows = rows[order]
                events = block.stats.event[rows]
                first = np.r_[True, events[1:] != events[:-1]]
                self._take(side, name, block, rows[first], events[first])
        index = self.index(block.metadata) if self._tables else None
        for column, (has, table) in self._tables.items():
            rows = np.flatnonzero(has[index])
            _put(side, column, rows, table[index[rows]])
        if device is not None:
            _put(side, "device", np.arange(len(block.metadata)), np.full(len(block.metadata), device, np.int64))
        return side

    def _take(self, side: Side, name: str, block: Block, rows: np.ndarray, events: np.ndarray) -> None:
        """One stat of these events (`rows`: where it stands in the block's stats)."""
        if name in DETAILS:
            texts, place = self._distinct(block, rows)
            for column, (has, table) in _table([details(text) for text in texts], self._reader).items():
                kept = has[place]
                _put(side, column, events[kept], table[place[kept]])
            return
        column = COLUMN_OF_STAT[name]
        how = SIDE_COLUMNS[column]
        form, raw = block.stats.form[rows], block.stats.value[rows]
        written = (form == 5) | (form == 7)
        plain = ~written & ((form != 2) | (how == REALS)) & (form > 0) & (how != TEXTS)
        if plain.any():
            found = np.where(form[plain] == 2, raw[plain].view(np.float64), raw[plain]) if how == REALS else raw[plain]
            finite = np.isfinite(found)
            _put(side, column, events[plain][finite], found[finite])
        if written.any():
            texts, place = self._distinct(block, rows[written])
            if how == TEXTS:
                ids = self._reader.text_ids(column)
                table = np.fromiter((-1 if text in NO_SCOPES else ids[text] for text in texts), np.int32, len(texts))
                found = table[place]
                _put(side, column, events[written][found >= 0], found[found >= 0])
                return
            for has, table in _table([{column: text} for text in texts], self._reader).values():
                kept = has[place]
                _put(side, column, events[written][kept], table[place[kept]])

    def _distinct(self, block: Block, rows: np.ndarray) -> tuple[list[str], np.ndarray]:
        """(distinct texts of these stats, which of them each has); texts stand in the event, or in the stat metadata."""
        form, value = block.stats.form[rows], block.stats.value[rows]
        known = self._plane.stats
        if (form == 7).all():
            numbers, place = np.unique(value, return_inverse=True)
            return [known.get(number, "") for number in numbers.tolist()], place
        texts = [known.get(number, "") for number in value.tolist()]
        inline = np.flatnonzero(form == 5)
        for place, text in zip(inline.tolist(), block.texts(rows[inline]), strict=True):
            texts[place] = text
        ids: dict[str, int] = {}
        place = np.fromiter((ids.setdefault(text, len(ids)) for text in texts), np.int64, len(texts))
        return list(ids), place

    def _metadata_tables(self, metadata: list[Metadata]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        order = {number: place for place, (number, _) in enumerate(self._stats)}
        names = dict(self._stats)
        found = []
        for each in metadata:
            row: dict[str, Any] = {}
            for number, value in sorted((stat for stat in each.stats if stat[0] in order), key=lambda stat: order[stat[0]]):
                value = _plain(value, self._plane)
                name = names[number]
                if name in DETAILS and isinstance(value, str):
                    for column, part in details(value).items():
                        row.setdefault(column, part)
                elif name not in DETAILS and value is not None and value not in NO_SCOPES:
                    row.setdefault(COLUMN_OF_STAT[name], value)
            if each.display_name and each.name and each.name != each.display_name:
                row.setdefault("long_name", each.name)
            found.append(row)
        return _table(found, self._reader)


def _table(rows: list[dict[str, Any]], reader: _Reader) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Column → (rows that have it, values of all rows)."""
    columns: dict[str, list[Any]] = {}
    for number, row in enumerate(rows):
        for column, value in row.items():
            columns.setdefault(column, [None] * len(rows))[number] = value
    tables = {}
    for column, found in columns.items():
        how = SIDE_COLUMNS[column]
        if how == TEXTS:
            kept, numbers = values.texts([str(value) if value is not None else None for value in found], reader.text_ids(column))
        else:
            kept, numbers = (values.integers if how == INTEGERS else values.reals)(found)
        has = np.zeros(len(rows), bool)
        has[slice(None) if kept is None else kept] = True
        table = np.zeros(len(rows), numbers.dtype)
        table[has] = numbers
        tables[column] = (has, table)
    return tables


def _put(side: Side, column: str, rows: np.ndarray, found: np.ndarray) -> None:
    """Add values to a column of a block where it has none yet."""
    if not len(rows):
        return
    if column not in side:
        side[column] = (rows, found)
        return
    old_rows, old = side[column]
    new = ~np.isin(rows, old_rows)
    if new.any():
        rows = np.concatenate([old_rows, rows[new]])
        order = np.argsort(rows, kind="stable")
        side[column] = (rows[order], np.concatenate([old, found[new].astype(old.dtype, copy=False)])[order])


def _plain(value: Any, plane: Plane) -> Any:
    if isinstance(value, Ref):
        value = plane.stats.get(value.id)
    return value[:_KEPT_TEXT] if isinstance(value, str) else value


def _name(line: Line) -> str:
    return line.display_name or line.name
