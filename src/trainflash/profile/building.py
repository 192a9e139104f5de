"""Blocks of decoded events → one `Trace` in its deterministic order. Every decoder ends here; see `events` for what the columns mean."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trainflash.profile.events import (
    BUSY_KINDS,
    INTEGERS,
    REALS,
    SIDE_COLUMNS,
    TEXTS,
    Counter,
    Events,
    Flows,
    Identity,
    Kind,
    Marks,
    Memory,
    Quality,
    Sparse,
    Trace,
    Track,
    TrackKind,
)
from trainflash.profile.growing import Growing, GrowingRows
from trainflash.profile.pairing import pair

HOUR_NS = 3_600_000_000_000
SECOND_NS = 1_000_000_000
_NARROW = tuple((np.iinfo(kind).min, np.iinfo(kind).max, kind) for kind in (np.int8, np.int16, np.int32))


class Interner(dict):
    """Text → id, in the order of first sight; used as `ids[text]`, which adds what is new. `texts[id]` is the text.

    A key that is no text gets the id of its text, so that decoders need not look at each one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def __missing__(self, key: object) -> int:
        text = "" if key is None else str(key)
        if text is not key and text in self:
            number = self[text]
        else:
            self[text] = number = len(self.texts)
            self.texts.append(text)
        self[key] = number
        return number


class TraceBuilder:
    """Collects blocks; `finish` sorts, joins begins and ends, and gives the trace.

    Times are int64 ns on one clock, without `base_ns`. Ids of strings are those of `strings`, ids of tracks those that `track` gave.
    `read`: the side columns that are wanted; others are left out.
    """

    EVENT_COLUMNS = ("start_ns", "duration_ns", "name", "category", "track", "kind")
    END_COLUMNS = ("t_ns", "name", "category", "track", "kind", "ends")
    FLOW_COLUMNS = ("id", "category", "t_ns", "track", "phase")
    MEMORY_COLUMNS = ("t_ns", "bytes", "allocated", "reserved", "device_type", "device", "track")
    MARK_COLUMNS = ("t_ns", "name", "category", "track")

    def __init__(self, source: str, file: str, read: Collection[str] = SIDE_COLUMNS) -> None:
        self.source, self.file, self.read = source, file, frozenset(read)
        self.strings = Interner()
        self.tracks: list[Track] = []
        self._track_ids: dict[tuple[str, str, TrackKind], int] = {}
        self._columns: dict[str, dict[str, Growing]] = {}
        self._side: dict[str, tuple[GrowingRows, Growing]] = {}  # rows and values
        self._rows = 0
        self._begins = 0
        self._begin_side: dict[str, tuple[GrowingRows, Growing]] = {}
        self._counters: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
        self.kind_of_track: dict[int, Callable[[str], Kind]] = {}  # name → kind, for events of kind OTHER on that track

    def track(self, process: str, thread: str, kind: TrackKind = TrackKind.HOST) -> int:
        """The id of this row of the viewer, new if it was not seen yet."""
        key = (process, thread, kind)
        number = self._track_ids.get(key)
        if number is None:
            number = self._track_ids[key] = len(self.tracks)
            self.tracks.append(Track(process, thread, kind=kind))
        return number

    def describe(self, track: int, **facts: Any) -> None:
        """Set fields of a track (`process_name`, `device`, …)."""
        self.tracks[track] = replace(self.tracks[track], **facts)

    def has_side(self, name: str) -> bool:
        """Whether any event so far has a value in this side column."""
        return name in self._side

    def add_events(self, side: Mapping[str, tuple[np.ndarray | None, np.ndarray]] = {}, **columns: np.ndarray) -> None:
        """Complete events: EVENT_COLUMNS, and side columns as (rows in this block, ascending, or None for all; values)."""
        self._append("events", columns)
        self._append_side(self._side, side, self._rows, len(columns["start_ns"]))
        self._rows += len(columns["start_ns"])

    def add_ends(self, side: Mapping[str, tuple[np.ndarray | None, np.ndarray]] = {}, **columns: np.ndarray) -> None:
        """Begins and ends: END_COLUMNS; side columns of begins are kept."""
        self._append("ends", columns)
        self._append_side(self._begin_side, side, self._begins, len(columns["t_ns"]))
        self._begins += len(columns["t_ns"])

    def add_flows(self, **columns: np.ndarray) -> None:
        self._append("flows", columns)

    def add_memory(self, **columns: np.ndarray) -> None:
        """MEMORY_COLUMNS; `op` (ids of strings) where all events of the trace say what asked for them."""
        self._append("memory", columns)

    def add_marks(self, **columns: np.ndarray) -> None:
        self._append("marks", columns)

    def add_sample(self, process: str, name: str, t_ns: int, value: float) -> None:
        times, values = self._counters.setdefault((process, name), ([], []))
        times.append(t_ns)
        values.append(value)

    def _append(self, table: str, columns: Mapping[str, np.ndarray]) -> None:
        blocks = self._columns.setdefault(table, {})
        for name, values in columns.items():
            blocks.setdefault(name, Growing()).append(values)

    def _append_side(self, into: dict, side: Mapping[str, tuple[np.ndarray | None, np.ndarray]], first: int, count: int) -> None:
        for name, (rows, values) in side.items():
            if len(values) and name in self.read:
                if name not in into:
                    into[name] = (GrowingRows(), Growing())
                all_rows, all_values = into[name]
                all_rows.append(first, count, rows)
                all_values.append(_narrow(values))

    def _table(self, table: str, names: Sequence[str], dtypes: Mapping[str, type]) -> dict[str, np.ndarray]:
        blocks = self._columns.pop(table, {})
        return {name: blocks.pop(name, Growing()).joined(dtypes.get(name, np.int64)) for name in names}

    def finish(
        self,
        identity: Identity | None = None,
        provenance: Mapping[str, Any] | None = None,
        quality: Quality | None = None,
        base_ns: int | None = None,
        drop_launch_arrows: frozenset[str] = frozenset(),
    ) -> Trace:
        """The trace. `drop_launch_arrows`: categories of flows that are left out where `correlation` says the same."""
        quality = quality or Quality()
        unmatched = self._join_ends()
        events, side = self._joined_events()
        self._kinds_by_track(events)
        flows = self._flow_table(drop_launch_arrows if "correlation" in side else frozenset())
        marks = self._table("marks", self.MARK_COLUMNS, {"name": np.int32, "category": np.int32, "track": np.int32})
        used = [events["name"], events["category"], flows["category"], marks["name"], marks["category"]]
        used += [column.values for name, column in side.items() if SIDE_COLUMNS[name] == TEXTS]
        asked = self._columns.get("memory", {}).get("op")
        asked = None if asked is None else asked.joined(np.int32)
        used += [] if asked is None else [asked]
        texts = _Order(self.strings.texts, used)
        tracks = self._described_tracks(events, side)
        order = sorted(range(len(tracks)), key=lambda number: tracks[number].key)
        track_rank = _inverse(np.asarray(order, np.int64))
        events["track"] = track_rank[events["track"]].astype(np.int32)
        for name in ("name", "category"):
            events[name] = texts.rank[events[name]]
        side = {
            name: Sparse(column.rows, texts.rank[column.values]) if SIDE_COLUMNS[name] == TEXTS else column for name, column in side.items()
        }
        events, side = _in_order(events, side)
        events, side, without_time = _with_times(events, side)
        base = base_ns or 0
        events["start_ns"] += base
        quality = replace(
            quality,
            unmatched=quality.unmatched + unmatched,
            without_time=quality.without_time + without_time,
            complete_events=len(events["start_ns"]),
        )
        return Trace(
            source=self.source,
            file=self.file,
            strings=tuple(texts.sorted),
            tracks=tuple(tracks[number] for number in order),
            events=Events(**events),
            side=side,
            flows=self._flows(flows, texts, track_rank, base),
            memory=self._memory(track_rank, base, None if asked is None else texts.rank[asked]),
            marks=self._marks(marks, texts, track_rank, base),
            counters=self._counter_series(base),
            identity=identity or Identity(),
            provenance=dict(provenance or {}),
            quality=quality,
            base_ns=base_ns,
            read=self.read,
        )

    def _join_ends(self) -> int:
        """Begins and ends become events. How many found no partner."""
        ends = self._table("ends", self.END_COLUMNS, {"ends": bool})
        if not len(ends["t_ns"]):
            return 0
        first, last = pair(ends["track"], ends["t_ns"], ends["ends"], ends["name"])
        place = np.full(len(ends["t_ns"]), -1, np.int64)
        place[first] = np.arange(len(first))
        side = {}
        for name, columns in self._begin_side.items():
            rows, values = (column.joined() for column in columns)
            kept = place[rows] >= 0
            order = np.argsort(place[rows[kept]], kind="stable")
            side[name] = (place[rows[kept]][order], values[kept][order])
        start = ends["t_ns"][first]
        columns = {name: ends[name][first] for name in ("name", "category", "track", "kind")}
        self.add_events(side, start_ns=start, duration_ns=ends["t_ns"][last] - start, **columns)
        return len(ends["t_ns"]) - 2 * len(first)

    def _joined_events(self) -> tuple[dict[str, np.ndarray], dict[str, Sparse]]:
        narrow = {"name": np.int32, "category": np.int32, "track": np.int32, "kind": np.int8}
        events = self._table("events", self.EVENT_COLUMNS, narrow)
        side = {}
        for name in sorted(self._side):
            rows, values = self._side.pop(name)
            side[name] = Sparse(rows.joined(), values.joined({INTEGERS: None, REALS: np.float64, TEXTS: np.int32}[SIDE_COLUMNS[name]]))
        return events, _with_rows_shared(side)

    def _kinds_by_track(self, events: Mapping[str, np.ndarray]) -> None:
        for track, kind_of in self.kind_of_track.items():
            rows = np.flatnonzero((events["track"] == track) & (events["kind"] == Kind.OTHER))
            names, place = np.unique(events["name"][rows], return_inverse=True)
            kinds = np.asarray([kind_of(self.strings.texts[name]) for name in names.tolist()], np.int8)
            events["kind"][rows] = kinds[place] if len(kinds) else 0

    def _described_tracks(self, events: Mapping[str, np.ndarray], side: Mapping[str, Sparse]) -> list[Track]:
        """A host track whose events are a device's work is a stream; its device and number are those of that work."""
        busy = np.isin(events["kind"], np.asarray(BUSY_KINDS, np.int8))
        tracks = list(self.tracks)
        for number in np.unique(events["track"][busy]).tolist():
            if tracks[number].kind is TrackKind.HOST:
                tracks[number] = replace(tracks[number], kind=TrackKind.STREAM)
        for field in ("device", "stream"):
            column = side.get(field)
            if column is None:
                continue
            on_device = busy[column.rows] | (events["kind"][column.rows] == Kind.SYNC)
            values, places = column.values[on_device], events["track"][column.rows[on_device]]
            for number in np.unique(places).tolist():
                found = np.unique(values[places == number])
                if len(found) == 1 and getattr(tracks[number], field) is None:
                    tracks[number] = replace(tracks[number], **{field: int(found[0])})
        return tracks

    def _flow_table(self, left_out: frozenset[str]) -> dict[str, np.ndarray]:
        narrow = {"category": np.int32, "track": np.int32, "phase": np.int8}
        flows = self._table("flows", self.FLOW_COLUMNS, narrow)
        unwanted = np.asarray([number for number, text in enumerate(self.strings.texts) if text in left_out], np.int32)
        keep = ~np.isin(flows["category"], unwanted)
        return {name: values[keep] for name, values in flows.items()}

    def _flows(self, flows: dict[str, np.ndarray], texts: _Order, track_rank: np.ndarray, base: int) -> Flows:
        flows["category"] = texts.rank[flows["category"]]
        flows["track"] = track_rank[flows["track"]].astype(np.int32)
        flows["t_ns"] = flows["t_ns"] + base
        order = np.lexsort((flows["track"], flows["phase"], flows["t_ns"], flows["id"], flows["category"]))
        return Flows(**{name: values[order] for name, values in flows.items()})

    def _memory(self, track_rank: np.ndarray, base: int, op: np.ndarray | None) -> Memory:
        memory = self._table("memory", self.MEMORY_COLUMNS, {"device_type": np.int32, "device": np.int32, "track": np.int32})
        memory["track"] = track_rank[memory["track"]].astype(np.int32)
        memory["t_ns"] = memory["t_ns"] + base
        order = np.lexsort([memory[name] for name in reversed(self.MEMORY_COLUMNS)])
        return Memory(**{name: values[order] for name, values in memory.items()}, op=None if op is None else op[order])

    def _marks(self, marks: dict[str, np.ndarray], texts: _Order, track_rank: np.ndarray, base: int) -> Marks:
        marks["track"] = track_rank[marks["track"]].astype(np.int32)
        marks["t_ns"] = marks["t_ns"] + base
        for name in ("name", "category"):
            marks[name] = texts.rank[marks[name]]
        order = np.lexsort((marks["category"], marks["name"], marks["track"], marks["t_ns"]))
        return Marks(**{name: values[order] for name, values in marks.items()})

    def _counter_series(self, base: int) -> tuple[Counter, ...]:
        series = []
        for process, name in sorted(self._counters):
            times, values = self._counters[process, name]
            t_ns, value = np.asarray(times, np.int64) + base, np.asarray(values, np.float64)
            order = np.lexsort((value, t_ns))
            series.append(Counter(process, name, t_ns[order], value[order]))
        return tuple(series)


class _Order:
    """The strings that these columns use by code point, and for each id of first sight its place among them."""

    def __init__(self, strings: list[str], used: Sequence[np.ndarray]) -> None:
        kept = np.zeros(len(strings), bool)
        for ids in used:
            kept[ids] = True
        order = sorted(np.flatnonzero(kept).tolist(), key=strings.__getitem__)
        self.sorted = [strings[number] for number in order]
        self.rank = np.zeros(len(strings), np.int32)
        self.rank[order] = np.arange(len(order))


def _inverse(order: np.ndarray) -> np.ndarray:
    inverse = np.empty(len(order), np.int64)
    inverse[order] = np.arange(len(order))
    return inverse


def _narrow(values: np.ndarray) -> np.ndarray:
    """The same integers in the fewest bytes that hold them: devices and streams in one, most others in four."""
    if values.dtype == np.int64:
        low, high = int(values.min()), int(values.max())
        return next((values.astype(kind) for least, most, kind in _NARROW if least <= low and high <= most), values)
    return values


def _with_rows_shared(side: Mapping[str, Sparse]) -> dict[str, Sparse]:
    """The same columns; those that the same events have share one array of rows."""
    known: dict[tuple[int, int, int], np.ndarray] = {}
    shared = {}
    for name, column in side.items():
        key = (len(column), int(column.rows[0]), int(column.rows[-1]))
        rows = known.setdefault(key, column.rows)
        shared[name] = Sparse(rows, column.values) if np.array_equal(rows, column.rows) else column
    return shared


def _in_order(events: dict[str, np.ndarray], side: dict[str, Sparse]) -> tuple[dict[str, np.ndarray], dict[str, Sparse]]:
    """Rows by (track, start); equal ones by all that they hold, so that the order in the file never shows."""
    order = _by_track_and_start(events["track"], events["start_ns"])
    start, track = events["start_ns"][order], events["track"][order]
    same = (start[1:] == start[:-1]) & (track[1:] == track[:-1])
    if same.any():
        tied = np.r_[False, same] | np.r_[same, False]
        places = np.flatnonzero(tied)
        rows = order[places]
        names = ("category", "name", "kind")
        keys = [events["track"][rows], events["start_ns"][rows], -events["duration_ns"][rows]]
        keys += [_dense(side, name, rows) for name in ("external_id", "ev_index")] + [events[name][rows] for name in names]
        first = np.lexsort(keys[::-1])
        order[places] = rows[first]
        equal = np.logical_and.reduce([key[first][1:] == key[first][:-1] for key in keys])
        if equal.any():
            still = np.flatnonzero(np.r_[False, equal] | np.r_[equal, False])
            rows = order[places[still]]
            keys = [key[first[still]] for key in keys] + [_dense(side, name, rows) for name in sorted(side)]
            order[places[still]] = rows[np.lexsort(keys[::-1])]
    del start, track
    for name in list(events):
        events[name] = events[name][order]
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    moved: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    last_use = {id(column.rows): name for name, column in side.items()}
    for name in list(side):
        column = side.pop(name)
        key = id(column.rows)
        if key not in moved:
            rows = place[column.rows]
            by_row = np.argsort(rows)
            moved[key] = rows[by_row], by_row.astype(np.int32)
        rows, by_row = moved.pop(key) if last_use[key] == name else moved[key]
        side[name] = Sparse(rows, column.values[by_row])
    return events, dict(sorted(side.items()))


def _by_track_and_start(track: np.ndarray, start: np.ndarray) -> np.ndarray:
    """`lexsort((start, track))` up to ties; as one sort of one number where both fit into 63 bits."""
    if not len(start):
        return np.empty(0, np.int64)
    low, high = int(start.min()), int(start.max())
    bits = (high - low).bit_length()
    if bits + int(track.max()).bit_length() <= 63:
        return np.argsort((track.astype(np.int64) << bits) | (start - low))
    return np.lexsort((start, track))


def _dense(side: Mapping[str, Sparse], name: str, rows: np.ndarray) -> np.ndarray:
    """Values of these rows of a column; the lowest there is where it has none."""
    column = side.get(name)
    if column is None:
        return np.zeros(len(rows), np.int8)
    lowest = -np.inf if column.values.dtype.kind == "f" else np.iinfo(column.values.dtype).min
    return column.take(rows, lowest)


def _with_times(events: dict[str, np.ndarray], side: dict[str, Sparse]) -> tuple[dict[str, np.ndarray], dict[str, Sparse], int]:
    """Without the events at the zero of the clock where that is no time of this trace: all others begin more than an hour later."""
    start = events["start_ns"]
    zero = np.abs(start) < SECOND_NS
    missing = int(zero.sum())
    if not missing or missing == len(start) or int(start[~zero].min()) < HOUR_NS:
        return events, side, 0
    place = np.cumsum(~zero) - 1
    kept = {}
    for name, column in side.items():
        stays = ~zero[column.rows]
        kept[name] = Sparse(place[column.rows[stays]].astype(np.int32), column.values[stays])
    return {name: values[~zero] for name, values in events.items()}, kept, missing
