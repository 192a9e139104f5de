"""A trace that was read → Kineto's JSON with what its readers need and nothing else, one file per rank.

Kept are all events with a duration, their names, kinds and the args that join and explain them, allocations, and who recorded it; left out
are log lines, launch shapes and ids that nothing reads, arrows that say what a correlation says, and white space. A slimmed file is
summarized to the same figures as what it was made of, whatever format that was in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trainflash.profile.categories import MEMORY_MARK, kind_of
from trainflash.profile.events import SIDE_COLUMNS, TEXTS, Kind, Sparse, Trace, TrackKind
from trainflash.profile.export import CHUNK, whole_file

CATEGORIES = {
    Kind.HOST_OP: "cpu_op",
    Kind.PYTHON: "python_function",
    Kind.ANNOTATION: "user_annotation",
    Kind.RUNTIME: "cuda_runtime",
    Kind.DRIVER: "cuda_driver",
    Kind.OVERHEAD: "overhead",
    Kind.SYNC: "cuda_sync",
    Kind.KERNEL: "kernel",
    Kind.MEMCPY: "gpu_memcpy",
    Kind.MEMSET: "gpu_memset",
    Kind.DEVICE_ANNOTATION: "gpu_user_annotation",
    Kind.SPAN: "Trace",
    Kind.COLLECTIVE: "collective_comm",
}
_ARGS = {  # column → the key that Kineto, or XLA, writes it under
    "external_id": "External id",
    "ev_index": "Ev Idx",
    "correlation": "correlation",
    "device": "device",
    "stream": "stream",
    "bytes": "bytes",
    "graph_node_id": "graph node id",
    "step": "step_num",
    "sequence": "Sequence number",
    "forward_thread": "Fwd thread id",
    "input_dims": "Input Dims",
    "input_types": "Input type",
    "call_stack": "Call stack",
    "flops": "flops",
    "collective": "Collective name",
    "in_elements": "In msg nelems",
    "out_elements": "Out msg nelems",
    "dtype": "dtype",
    "group_size": "Group size",
    "group_name": "Process Group Name",
    "group_ranks": "Process Group Ranks",
    "collective_sequence": "Seq",
    "scope": "tf_op",
    "hlo_category": "hlo_category",
    "source": "source",
}
_AS_JSON = frozenset({"input_dims", "input_types", "group_ranks"})  # whose text is JSON already
_MEMORY_ARGS = {
    "bytes": "Bytes",
    "allocated": "Total Allocated",
    "reserved": "Total Reserved",
    "device_type": "Device Type",
    "device": "Device Id",
}


@dataclass(frozen=True)
class Slimmed:
    """What stands in one file."""

    path: str
    bytes: int
    events: int
    rank: int | None


def write_slim(path: Path, trace: Trace) -> Slimmed:
    """Write one trace, compressed if the name ends in `.gz`; the file appears whole or not at all. Raises `OSError`."""
    base = int(trace.events.start_ns.min(initial=np.iinfo(np.int64).max)) if len(trace.events) else 0
    with whole_file(path) as out:
        out.write("{" + ",".join(f"{json.dumps(key)}:{json.dumps(value)}" for key, value in _headers(trace, base).items()))
        out.write(',"traceEvents":[')
        between = "\n"
        for lines in (*_metadata(trace), *_memory(trace, base)):
            out.write(between + lines)
            between = ",\n"
        for rows in _events(trace, base):
            out.write(between + ",\n".join(rows))
            between = ",\n"
        out.write("\n]}\n")
    return Slimmed(str(path), path.stat().st_size, len(trace.events), trace.identity.rank)


def _headers(trace: Trace, base: int) -> dict[str, Any]:
    identity = trace.identity
    kept = {
        key: value for key, value in trace.provenance.items() if key not in ("displayTimeUnit", "baseTimeNanoseconds", "distributedInfo")
    }
    found: dict[str, Any] = {"schemaVersion": 1, **kept, "displayTimeUnit": "ms", "baseTimeNanoseconds": base}
    if identity.rank is not None:
        found["distributedInfo"] = {
            "rank": identity.rank,
            "world_size": identity.world_size,
            "backend": identity.backend,
            "pg_config": list(identity.process_groups),
        }
    return found


def _place(trace: Trace) -> list[str]:
    """`"pid":…,"tid":…` of each track; tracks that share both, as pairs joined by ids may, get threads of their own."""
    taken: set[tuple[str, str]] = set()
    places = []
    for track in trace.tracks:
        thread = track.thread
        while (track.process, thread) in taken:
            thread += "'"
        taken.add((track.process, thread))
        places.append(f'"pid":{_id(track.process)},"tid":{_id(thread)}')
    return places


def _id(text: str) -> str:
    return text if text.isascii() and text.isdigit() and len(text) < 18 and (text == "0" or text[0] != "0") else json.dumps(text)


def _metadata(trace: Trace) -> Iterator[str]:
    for track, place in zip(trace.tracks, _place(trace), strict=True):
        if track.kind is TrackKind.SPANS:
            continue
        named = {
            "process_name": ("name", track.process_name),
            "process_labels": ("labels", track.labels),
            "thread_name": ("name", track.thread_name),
        }
        for name, (key, value) in named.items():
            if value is not None:
                yield f'{{"ph":"M","name":"{name}",{place},"args":{{"{key}":{json.dumps(value)}}}}}'


def _memory(trace: Trace, base: int) -> Iterator[str]:
    memory, places = trace.memory, _place(trace)
    columns = [getattr(memory, name).tolist() for name in _MEMORY_ARGS]
    for time, track, *values in zip(memory.t_ns.tolist(), memory.track.tolist(), *columns, strict=True):
        args = ",".join(
            f'"{key}":{value}' for (name, key), value in zip(_MEMORY_ARGS.items(), values, strict=True) if value >= 0 or name == "bytes"
        )
        head = f'{{"ph":"i","cat":"cpu_instant_event","name":"{MEMORY_MARK}","s":"t",{places[track]}'
        yield f'{head},"ts":{_us(time - base)},"args":{{{args}}}}}'


def _us(ns: int) -> str:
    return f"{'-' if ns < 0 else ''}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"


def _events(trace: Trace, base: int) -> Iterator[list[str]]:
    events, places = trace.events, _place(trace)
    names = [json.dumps(text) for text in trace.strings]
    categories = _categories(trace)
    readers = [(f'"{key}":', _values(trace, name)) for name, key in _ARGS.items() if name in trace.read and len(trace.column(name))]
    told = _of_tracks(trace)
    for first in range(0, len(events), CHUNK):
        rows = np.arange(first, min(first + CHUNK, len(events)))
        args = [told[track] for track in events.track[rows].tolist()]
        for key, values in readers:
            for at, text in values(rows):
                args[at] += f",{key}{text}"
        columns = (getattr(events, name)[rows].tolist() for name in ("name", "track", "start_ns", "duration_ns"))
        yield [
            f'{{"ph":"X","cat":{categories(row)},"name":{names[name]},{places[track]},"ts":{_us(start - base)},"dur":{_us(length)}'
            + (f',"args":{{{arg[1:]}}}}}' if arg else "}")
            for row, name, track, start, length, arg in zip(rows.tolist(), *columns, args, strict=True)
        ]


def _of_tracks(trace: Trace) -> list[str]:
    """The device and stream of each track whose events do not say them."""
    found = []
    for number, track in enumerate(trace.tracks):
        rows = np.arange(*trace.track_rows(number).indices(len(trace.events))[:2])
        facts = {"device": track.device, "stream": track.stream} if track.kind is TrackKind.STREAM else {}
        found.append(
            "".join(f',"{name}":{value}' for name, value in facts.items() if value is not None and not trace.column(name).has(rows).any())
        )
    return found


def _categories(trace: Trace) -> Callable[[int], str]:
    """The category of each row: its own where that says its kind, else Kineto's for the kind."""
    known: dict[tuple[int, int, int], str] = {}

    def of(row: int) -> str:
        category, name, kind = (int(getattr(trace.events, column)[row]) for column in ("category", "name", "kind"))
        key = (category, name, kind)
        if key not in known:
            own = trace.strings[category]
            known[key] = json.dumps(own if kind_of(own, trace.strings[name]) == kind else CATEGORIES.get(Kind(kind), own))
        return known[key]

    return of


def _values(trace: Trace, name: str) -> Callable[[np.ndarray], Iterator[tuple[int, str]]]:
    """(place among these rows, value as JSON) of those that have one."""
    column: Sparse = trace.column(name)
    strings: Mapping[int, str] | None = None
    if SIDE_COLUMNS[name] == TEXTS:
        strings = {code: trace.strings[code] for code in np.unique(column.values).tolist()}
        strings = {code: text if name in _AS_JSON and _is_json(text) else json.dumps(text) for code, text in strings.items()}

    def of(rows: np.ndarray) -> Iterator[tuple[int, str]]:
        low, high = np.searchsorted(column.rows, [rows[0], rows[-1] + 1])
        for row, value in zip(column.rows[low:high].tolist(), column.values[low:high].tolist(), strict=True):
            yield row - int(rows[0]), strings[value] if strings is not None else repr(value)

    return of


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
