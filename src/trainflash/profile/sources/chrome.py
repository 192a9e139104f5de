"""Chrome's JSON trace format, as Kineto (PyTorch), XLA and Perfetto write it → `Trace`.

Format: "Trace Event Format" (Google, 2016). Complete events (X), begins and ends (B, E; b, e and S, F by id), instants (i, I, n),
counters (C), arrows (s, t, f) and metadata (M); all else is counted. Times in the file are microseconds.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from trainflash.profile.building import TraceBuilder
from trainflash.profile.categories import LAUNCH_ARROWS, MEMORY_MARK, SPAN_PROCESSES, kind_of
from trainflash.profile.events import INTEGERS, REALS, SIDE_COLUMNS, TEXTS, Identity, Quality, Trace, TrackKind
from trainflash.profile.sources import kineto_args, values
from trainflash.profile.sources.chrome_names import Names, describe_tracks
from trainflash.profile.sources.json_stream import WINDOW, JsonStream
from trainflash.profile.sources.kineto_header import identity_of, notes_of, provenance_of
from trainflash.profile.sources.refusals import not_a_trace

EVENT_CAP = 1_000_000  # xprof writes no more events into a JSON file (OpenXLA: kTraceViewerMaxEvents)
FLOAT_EXACT_US = float(1 << 43)  # from here on (102 days) a float of microseconds no longer holds every nanosecond

_NO_ARGS = msgspec.Raw(b"{}")
_TS, _DUR, _PID, _TID, _ARGS, _ID = (attrgetter(name) for name in ("ts", "dur", "pid", "tid", "args", "id"))
_PHASES = {"s": 0, "t": 1, "f": 2}
_STARTS, _ENDS = frozenset("BbS"), frozenset("EeF")
_NESTED = frozenset("BE")


class Event(msgspec.Struct, gc=False):
    """One event of the file; the order of the fields is Kineto's."""

    ph: Any = None
    cat: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = None
    args: msgspec.Raw = _NO_ARGS
    id: Any = None


class ExactEvent(msgspec.Struct, gc=False):
    """The same with the text of its time, for files whose times a float cannot hold."""

    ph: Any = None
    cat: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: Any = None
    args: msgspec.Raw = _NO_ARGS
    id: Any = None


def read(
    chunks: Iterable[bytes], file: str, cut_short: Iterable[str] = (), window: int = WINDOW, columns: Collection[str] = SIDE_COLUMNS
) -> Trace:
    """The trace that this stream of text holds. `cut_short` gives, once `chunks` is at its end, why the stream ended early, if it did.

    `window`: bytes of text decoded at once. `columns`: the side columns that are wanted. Raises `UsageError` for a text that is no trace;
    what is wrong inside one stands in its `quality`.
    """
    return _Reader(file, columns).read(chunks, cut_short, window)


class _Threads(dict):
    """tid as the file has it → id of the track, for one process."""

    def __init__(self, builder: TraceBuilder, process: str) -> None:
        super().__init__()
        self._builder, self._process = builder, process

    def __missing__(self, thread: Any) -> int:
        kind = TrackKind.SPANS if self._process in SPAN_PROCESSES else TrackKind.HOST
        self[thread] = number = self._builder.track(self._process, _text(thread), kind)
        return number


class _Processes(dict):
    """pid as the file has it → its threads."""

    def __init__(self, builder: TraceBuilder) -> None:
        super().__init__()
        self._builder = builder

    def __missing__(self, process: Any) -> _Threads:
        self[process] = threads = _Threads(self._builder, _text(process))
        return threads


class _Reader:
    def __init__(self, file: str, columns: Collection[str]) -> None:
        self.file = file
        self.builder = TraceBuilder("chrome", file, columns)
        self.families = kineto_args.Families(columns)
        self.tracks = _Processes(self.builder)
        self.names = Names(self.builder.strings)
        self.side_texts = {}
        self.headers: dict[str, Any] = {}
        self.metadata: dict[str, dict] = defaultdict(dict)
        self.counts: Counter[str] = Counter()
        self.stream: JsonStream | None = None

    def read(self, chunks: Iterable[bytes], cut_short: Iterable[str], window: int) -> Trace:
        self.stream = JsonStream(chunks, Event, self.headers.__setitem__, self.file, window)
        for events in self.stream:
            if self.stream.event_type is Event and self._needs_exact_times(events):
                self.stream.event_type = ExactEvent
                self.stream.again()
            else:
                self._take(events)
        if not self.stream.text.has_events:
            raise not_a_trace(self.file, self.headers, self.stream.text.skipped_headers)
        return self._finish(list(cut_short))

    @staticmethod
    def _needs_exact_times(events: list) -> bool:
        sample = events[:: max(1, len(events) // 64)]
        return any(type(event) is Event and type(event.ts) is float and abs(event.ts) >= FLOAT_EXACT_US for event in sample)

    def _take(self, events: list) -> None:
        """All events of one list, family by family."""
        groups: dict[tuple[Any, Any], list] = defaultdict(list)
        try:
            for event in events:
                groups[event.ph, event.cat].append(event)
        except (TypeError, AttributeError):
            groups.clear()
            for event in filter(self._is_event, events):
                event.ph, event.cat = _text(event.ph), _text(event.cat)
                groups[event.ph, event.cat].append(event)
        for (phase, category), group in groups.items():
            category = _text(category)
            if phase == "X":
                self._complete(category, group)
            elif phase in _PHASES:
                self._arrows(category, _PHASES[phase], group)
            elif phase in ("i", "I", "R", "n"):
                self._marks(category, group)
            elif phase == "M":
                self._names_of(group)
            elif phase == "C":
                self._samples(group)
            elif phase in _STARTS or phase in _ENDS:
                self._ends(category, phase, group)
            else:
                self.counts["other"] += len(group)

    def _is_event(self, event: Any) -> bool:
        if isinstance(event, Event | ExactEvent):
            return True
        self.counts["unparsed"] += 1
        return False

    # Columns

    def _times(self, group: list) -> tuple[list, np.ndarray]:
        """(the events that have a time; their times in ns)."""
        if isinstance(group[0], ExactEvent):
            found = values.exact_nanoseconds(bytes(event.ts) for event in group)
            if None in found:
                group = [event for event, time in zip(group, found, strict=True) if time is not None]
                self.counts["without_time"] += len(found) - len(group)
            return group, np.asarray([time for time in found if time is not None], np.int64)
        rows, times = values.numbers(_TS, group)
        times, possible = values.nanoseconds(times)
        if rows is not None or not possible.all():
            kept = (np.arange(len(group)) if rows is None else rows)[possible]
            self.counts["without_time"] += len(group) - len(kept)
            return [group[row] for row in kept.tolist()], times[possible]
        return group, times

    def _places(self, group: list) -> np.ndarray:
        try:
            processes = set(map(_PID, group))
            if len(processes) > 1:
                return np.fromiter([self.tracks[event.pid][event.tid] for event in group], np.int32, len(group))
            tracks = self.tracks[processes.pop()]
            threads = set(map(_TID, group))
            if len(threads) > 1:
                return np.fromiter(map(tracks.__getitem__, map(_TID, group)), np.int32, len(group))
            return np.full(len(group), tracks[threads.pop()], np.int32)
        except TypeError:
            return np.fromiter([self.tracks[_text(event.pid)][_text(event.tid)] for event in group], np.int32, len(group))

    def _complete(self, category: str, group: list) -> None:
        group, start = self._times(group)
        if not group:
            return
        rows, lengths = values.numbers(_DUR, group)
        if rows is not None:
            self.counts["without_duration"] += len(group) - len(rows)
            full = np.zeros(len(group))
            full[rows] = lengths
            lengths = full
        duration, possible = values.nanoseconds(lengths, values.LONGEST_NS)
        self.counts["negative_durations"] += int((duration < 0).sum())
        self.counts["endless"] += int((~possible).sum())
        columns = self._common(category, group)
        side = self._side_of(category, group, columns)
        self.builder.add_events(side, start_ns=start, duration_ns=np.maximum(duration, 0), **columns)

    def _common(self, category: str, group: list) -> dict[str, np.ndarray]:
        name = self.names.ids(group)
        return {
            "name": name,
            "category": np.full(len(group), self.builder.strings[category], np.int32),
            "track": self._places(group),
            "kind": self.names.kinds(category, name),
        }

    def _side_of(self, category: str, group: list, columns: dict[str, np.ndarray]) -> dict[str, tuple[np.ndarray | None, np.ndarray]]:
        steps = self.names.steps(columns["name"], columns["kind"])
        side = self._side(self.families.of(kind_of(category, "")), group)
        return side if steps is None else side | {"step": steps}

    def _side(self, family: kineto_args.Family, group: list) -> dict[str, tuple[np.ndarray | None, np.ndarray]]:
        args = self._args(family, group) if family.args else ()
        side: dict[str, tuple[np.ndarray | None, np.ndarray]] = {}
        for arg in family.args:
            if arg.column in side or (arg.only_with and arg.only_with not in side):
                continue
            if arg.how in (INTEGERS, REALS) and (whole := values.whole(arg.get, args, arg.how)) is not None:
                side[arg.column] = (None, whole)
                continue
            found = list(map(arg.get, args))
            if found.count(None) == len(found):
                continue
            if arg.how == INTEGERS:
                column = values.integers(found)
            elif arg.how == REALS:
                column = values.reals(found)
            elif arg.how == TEXTS:
                column = values.texts(found, self._texts(arg.column))
            else:
                column = values.json_texts(found, self._texts(arg.column))
            side[arg.column] = column
        for trigger, more in family.more.items():
            if trigger in side:
                rows = side[trigger][0]
                found = self._side(more, group if rows is None else [group[row] for row in rows.tolist()])
                for name, (places, column) in found.items():
                    side.setdefault(name, (places if rows is None else rows if places is None else rows[places], column))
        return side

    def _texts(self, column: str) -> values.Texts:
        return self.side_texts.setdefault(column, values.Texts(self.builder.strings))

    def _args(self, family: kineto_args.Family, group: list) -> list:
        """The args of each event, decoded at once where all can be."""
        try:
            return family.decoder.decode(b"[" + b",".join(map(_ARGS, group)) + b"]")
        except (ValueError, RecursionError):
            return [self._args_of(family, event) for event in group]

    def _args_of(self, family: kineto_args.Family, event: Event) -> Any:
        try:
            return family.one.decode(bytes(event.args))
        except (ValueError, RecursionError):
            self.counts["unread_args"] += bytes(event.args) != b"null"
            return family.empty

    # Everything else

    def _ends(self, category: str, phase: str, group: list) -> None:
        group, times = self._times(group)
        if not group:
            return
        columns = self._common(category, group)
        if phase not in _NESTED:
            columns["track"] = np.asarray([self._async_track(category, event) for event in group], np.int32)
        ends = np.full(len(group), phase in _ENDS)
        side = self._side_of(category, group, columns) if phase in _STARTS else {}
        self.builder.add_ends(side, t_ns=times, ends=ends, **columns)

    def _async_track(self, category: str, event: Event) -> int:
        return self.builder.track(_text(event.pid), f"{category} {_text(event.id)}", TrackKind.ASYNC)

    def _arrows(self, category: str, phase: int, group: list) -> None:
        if category in LAUNCH_ARROWS and self.builder.has_side("correlation"):
            return
        group, times = self._times(group)
        if not group:
            return
        ids = [event.id for event in group]
        ids = np.asarray(ids if set(map(type, ids)) == {int} and max(map(abs, ids)) < 1 << 62 else list(map(_number, ids)), np.int64)
        count = len(group)
        category_ids = np.full(count, self.builder.strings[category], np.int32)
        phases = np.full(count, phase, np.int8)
        self.builder.add_flows(id=ids, category=category_ids, t_ns=times, track=self._places(group), phase=phases)

    def _marks(self, category: str, group: list) -> None:
        memory = [event for event in group if event.name == MEMORY_MARK]
        if memory:
            self._allocations(memory)
        marks = [event for event in group if event.name != MEMORY_MARK] if memory else group
        marks, times = self._times(marks) if marks else ([], None)
        if marks:
            columns = self._common(category, marks)
            columns.pop("kind")
            self.builder.add_marks(t_ns=times, **columns)

    def _allocations(self, group: list) -> None:
        group, times = self._times(group)
        if not group:
            return
        family = kineto_args.MEMORY
        args = self._args(family, group)
        columns = {}
        for arg in family.args:
            rows, found = values.integers(list(map(arg.get, args)))
            missing = 0 if arg.column == "bytes" else -1
            full = np.full(len(group), missing, np.int64)
            full[slice(None) if rows is None else rows] = found
            columns[arg.column] = full
        self.builder.add_memory(t_ns=times, track=self._places(group), **columns)

    def _names_of(self, group: list) -> None:
        self.counts["metadata"] += len(group)
        for event in group:
            try:
                args = msgspec.json.decode(bytes(event.args))
            except (ValueError, RecursionError):
                continue
            name = _text(event.name)
            key = "sort_index" if name.endswith("sort_index") else "labels" if name.endswith("labels") else "name"
            if not isinstance(args, dict) or args.get(key) is None:
                continue
            place = (_text(event.pid), _text(event.tid)) if name.startswith("thread") else (_text(event.pid),)
            known = self.metadata[name]
            text = _text(args[key])
            known[place] = min(known.get(place, text), text)

    def _samples(self, group: list) -> None:
        group, times = self._times(group)
        for event, time in zip(group, times.tolist(), strict=True):
            try:
                args = msgspec.json.decode(bytes(event.args))
            except (ValueError, RecursionError):
                self.counts["unread_args"] += 1
                continue
            for key, value in args.items() if isinstance(args, dict) else ():
                if isinstance(value, int | float) and abs(value) < 1e300:
                    name = _text(event.name)
                    self.builder.add_sample(_text(event.pid), name if key in ("value", name) else f"{name}.{key}", time, float(value))

    # The end

    def _finish(self, cut_short: list[str]) -> Trace:
        text = self.stream.text
        describe_tracks(self.builder, self.metadata)
        if "schemaVersion" in self.headers or "deviceProperties" in self.headers or self.names.kineto:
            self.builder.source = "kineto"
        notes = list(cut_short) + notes_of(self.headers)
        for key, what in (
            ("without_duration", "complete events without a duration"),
            ("endless", "events whose duration no recording can hold: they count without a length"),
            ("unread_args", "events whose args could not be read"),
        ):
            if self.counts[key]:
                notes.append(f"{self.counts[key]} {what}")
        for column, known in sorted(self.side_texts.items()):
            if known.left_out:
                notes.append(f"{known.left_out} values of {column} left out: more than {values.MANY_TEXTS} different ones")
        if text.repaired:
            notes.append(f"{text.repaired} events were not valid JSON and were mended")
        if text.truncated and self.builder.source == "kineto" and "baseTimeNanoseconds" not in self.headers:
            notes.append("the base of its times, which newer versions write behind the events, is missing too: ranks may lie apart")
        if text.skipped_headers:
            notes.append("left out beside the events: " + ", ".join(sorted(set(text.skipped_headers))))
        quality = Quality(
            truncated=text.truncated or bool(cut_short),
            cut_at=text.cut_at,
            total_events=text.total,
            metadata_events=self.counts["metadata"],
            unparsed=text.unparsed + self.counts["unparsed"],
            without_time=self.counts["without_time"],
            negative_durations=self.counts["negative_durations"],
            event_cap=EVENT_CAP if text.total - self.counts["metadata"] == EVENT_CAP else None,
            notes=tuple(notes),
        )
        base = self.headers.get("baseTimeNanoseconds")
        base_ns = base if isinstance(base, int) and not isinstance(base, bool) and abs(base) < values.LARGEST_NS else None
        identity: Identity = identity_of(self.headers, self.file)
        return self.builder.finish(identity, provenance_of(self.headers), quality, base_ns, LAUNCH_ARROWS)


def _text(value: Any) -> str:
    if type(value) is float and value.is_integer():
        return str(int(value))
    return value if type(value) is str else "" if value is None else str(value)


def _number(value: Any) -> int:
    """An id as a number: its own if it is one, else a hash of its text."""
    text = _text(value)
    try:
        number = int(text, 0) if len(text) < 40 else None
    except ValueError:
        number = None
    if number is not None and abs(number) < 1 << 62:
        return number
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=7).digest(), "big")
