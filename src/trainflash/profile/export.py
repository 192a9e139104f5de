"""Processes with tracks and counters → one file in Chrome's JSON trace format, which ui.perfetto.dev and chrome://tracing open.

Slices are complete events ("X"), marks are instants ("i"), counters "C", names are metadata ("M"). Rows are written in chunks, so that the
file of a long run needs no more memory than the arrays that it is made of. Times are CLOCK_MONOTONIC nanoseconds; the file counts
microseconds from the earliest one.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import numpy as np

CHUNK = 16_384  # rows made into text at once
COMPRESSION = 4  # a third of the time of the default for a file one tenth larger


@dataclass(frozen=True)
class Part:
    """Slices or marks of one track: the i-th begins at `start_ns[i]`, ends at `end_ns[i]` (None: marks) and is called `names[name[i]]`.

    Without `name` all are called `names[0]`; with `numbered`, which stands alone in its track, their number follows. Slices of one track
    must nest.
    """

    names: tuple[str, ...]
    start_ns: Sequence[int]
    end_ns: Sequence[int] | None = None
    name: Sequence[int] | None = None
    numbered: bool = False


@dataclass(frozen=True)
class Track:
    """One row of the viewer."""

    name: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Counter:
    """A quantity over time; `unit` stands behind its name."""

    name: str
    unit: str
    t_ns: Sequence[int]
    value: Sequence[float]


@dataclass(frozen=True)
class Process:
    """One group of rows. `pid` is the system's where it is one."""

    pid: int
    name: str
    tracks: tuple[Track, ...] = ()
    counters: tuple[Counter, ...] = ()


def moved(process: Process, by_ns: int, pid: int) -> Process:
    """The process under another number, with all that its tracks show that much later."""

    def later(times: Sequence[int] | None) -> np.ndarray | None:
        return None if times is None else np.asarray(times, np.int64) + by_ns

    tracks = (
        replace(track, parts=tuple(replace(part, start_ns=later(part.start_ns), end_ns=later(part.end_ns)) for part in track.parts))
        for track in process.tracks
    )
    return replace(process, pid=pid, tracks=tuple(tracks))


@dataclass(frozen=True)
class Written:
    """What stands in the file."""

    path: str
    bytes: int
    processes: int
    tracks: int
    slices: int
    marks: int
    counters: int


def write_trace(path: Path, processes: Sequence[Process], about: dict[str, str]) -> Written:
    """Write the file, compressed if its name ends in `.gz`; it appears whole or not at all. `about` is said in its metadata.

    Processes of different machines may share a pid: the later one gets a number of its own. Raises `OSError`.
    """
    path = Path(path)
    origin = min((int(starts.min()) for starts in map(np.asarray, _times(processes)) if len(starts)), default=0)
    totals: dict[str, int] = {}
    with whole_file(path) as out:
        out.write('{"displayTimeUnit":"ms","otherData":' + json.dumps(about) + ',"traceEvents":[')
        between = "\n"
        for kind, rows, count in _all_rows(processes, origin):
            out.write(between + rows)
            between = ",\n"
            totals[kind] = totals.get(kind, 0) + count
        out.write("\n]}\n")
    tracks = sum(len(process.tracks) for process in processes)
    counters = sum(len(process.counters) for process in processes)
    return Written(str(path), path.stat().st_size, len(processes), tracks, totals.get("slices", 0), totals.get("marks", 0), counters)


def _all_rows(processes: Sequence[Process], origin: int) -> Iterator[tuple[str, str, int]]:
    """(kind, text without a comma at its end, how many rows) in chunks."""
    tid = 0
    pids: set[int] = set()
    for order, process in enumerate(processes):
        pid = _free(process.pid, pids)
        pids.add(pid)
        yield "names", _metadata(pid, 0, "process_name", {"name": process.name}), 1
        yield "names", _metadata(pid, 0, "process_sort_index", {"sort_index": order}), 1
        for row, track in enumerate(process.tracks):
            tid += 1
            yield "names", _metadata(pid, tid, "thread_name", {"name": track.name}), 1
            yield "names", _metadata(pid, tid, "thread_sort_index", {"sort_index": row}), 1
            slices = [part for part in track.parts if part.end_ns is not None]
            marks = [part for part in track.parts if part.end_ns is None]
            for kind, parts in (("slices", slices), ("marks", marks)):
                for lines in _rows(parts, f'"pid":{pid},"tid":{tid}', origin):
                    yield kind, ",\n".join(lines), len(lines)
        for counter in process.counters:
            for lines in _counter_rows(counter, pid, origin):
                yield "samples", ",\n".join(lines), len(lines)


@contextmanager
def whole_file(path: Path) -> Iterator[IO[str]]:
    """A text file beside `path` that takes its place when all was written."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    packed = path.suffix == ".gz"
    try:
        with gzip.open(beside, "wt", COMPRESSION, "ascii") if packed else beside.open("w", encoding="ascii") as out:
            yield out
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _times(processes: Sequence[Process]) -> Iterator[Sequence[int]]:
    for process in processes:
        for track in process.tracks:
            yield from (part.start_ns for part in track.parts)
        yield from (counter.t_ns for counter in process.counters)


def _free(pid: int, taken: set[int]) -> int:
    while pid in taken or pid <= 0:
        pid = max(taken, default=0) + 1
    return pid


def _metadata(pid: int, tid: int, name: str, arguments: dict) -> str:
    return json.dumps({"ph": "M", "pid": pid, "tid": tid, "name": name, "args": arguments}, separators=(",", ":"))


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


class _Numbered:
    """Begins of rows that are called "name 0", "name 1", …; made one by one, since there may be millions."""

    def __init__(self, name: str, place: str) -> None:
        self._name, self._place = json.dumps(name)[:-1], place

    def __getitem__(self, number: int) -> str:
        return f'{{"name":{self._name} {number}",{self._place},'


def _rows(parts: Sequence[Part], place: str, origin: int) -> Iterator[list[str]]:
    """Rows of slices, or of marks, in the order of their begins; of two that begin together the longer one first."""
    if not parts:
        return
    starts, ends, which, names = [], [], [], []
    for part in parts:
        begin = np.asarray(part.start_ns, dtype=np.int64) - origin
        starts.append(begin)
        ends.append(begin if part.end_ns is None else np.maximum(begin, np.asarray(part.end_ns, dtype=np.int64) - origin))
        if part.name is not None:
            which.append(len(names) + np.asarray(part.name, dtype=np.int64))
        else:
            which.append(np.arange(len(begin)) if part.numbered else np.full(len(begin), len(names)))
        names += part.names
    start, end, name = (np.concatenate(columns) for columns in (starts, ends, which))
    heads = _Numbered(names[0], place) if parts[0].numbered else [f'{{"name":{json.dumps(text)},{place},' for text in names]
    slices = parts[0].end_ns is not None
    order = np.lexsort((-end, start))
    for first in range(0, len(order), CHUNK):
        chunk = order[first : first + CHUNK]
        begins, lengths, texts = start[chunk].tolist(), (end[chunk] - start[chunk]).tolist(), name[chunk].tolist()
        if slices:
            rows = zip(begins, lengths, texts, strict=True)
            yield [f'{heads[text]}"ph":"X","ts":{_us(begin)},"dur":{_us(length)}}}' for begin, length, text in rows]
        else:
            yield [f'{heads[text]}"ph":"i","s":"t","ts":{_us(begin)}}}' for begin, text in zip(begins, texts, strict=True)]


def _counter_rows(counter: Counter, pid: int, origin: int) -> Iterator[list[str]]:
    label = f"{counter.name} [{counter.unit}]" if counter.unit else counter.name
    head = f'{{"name":{json.dumps(label)},"ph":"C","pid":{pid},"ts":'
    for first in range(0, len(counter.t_ns), CHUNK):
        rows = zip(counter.t_ns[first : first + CHUNK], counter.value[first : first + CHUNK], strict=True)
        yield [f'{head}{_us(int(t) - origin)},"args":{{"value":{float(value):.9g}}}}}' for t, value in rows]
