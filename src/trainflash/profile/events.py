"""The model that every source of traces is decoded into: columns, so that a trace of several GB stays small.

A `Profile` is what was named on the command line: one `Trace` per rank (or per host of an XPlane directory), ordered by rank. A `Trace`
holds

* `events`: everything with a duration, as numpy columns, contiguous per track;
* `side`: what only some events have (correlation, stream, bytes, step number, …), one `Sparse` column per name of `SIDE_COLUMNS`;
* `flows`, `memory`, `counters`: arrows, allocator events, sampled values;
* `tracks`, `strings`: what the int32 columns index;
* `identity`, `provenance`, `quality`: who recorded it, with what, and how whole it is.

Units: all times are int64 nanoseconds of the trace's own clock (`base_ns` already added, so ranks with aligned clocks compare directly;
a time of 0 is an event without a time and is counted in `quality`). `None`, or a row that a `Sparse` column lacks: not recorded, never 0.

Order: whatever the order in the file, equal content gives equal columns. Strings are sorted by code point, tracks by `Track.key`
(numbers before texts), events by (track, start, longer first, external id, Ev Idx, category, name, then all side columns), so that in a
well-nested track a parent stands before its children. Equal rows are kept: they are different events.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np


class Kind(IntEnum):
    """What an event is, whatever its source calls it. `BUSY_KINDS` are the device's work; the others name, frame or wait for it."""

    OTHER = 0
    HOST_OP = 1  # an operator on the host: cpu_op, Operator, a framework op of XPlane's host plane
    PYTHON = 2  # a Python frame: python_function, XPlane's python tracer
    ANNOTATION = 3  # record_function, NVTX range, TraceMe, the profiler's own step marker, on the host
    RUNTIME = 4  # a call into the CUDA, HIP or XPU runtime
    DRIVER = 5  # a call into the driver
    OVERHEAD = 6  # the profiler's own cost, said by itself
    SYNC = 7  # a wait recorded on the device's side (cuda_sync), no work
    KERNEL = 8  # work on a device: a kernel; on a TPU an op of the line "XLA Ops"
    MEMCPY = 9
    MEMSET = 10
    DEVICE_ANNOTATION = 11  # an annotation projected onto the device (gpu_user_annotation, XPlane's name scopes and framework ops)
    DEVICE_OP = 12  # an XLA op on a derived line: the same time as the kernels that it launched, never to be added to them
    DEVICE_MODULE = 13  # an XLA module or program on a device
    DEVICE_STEP = 14  # a step marker on a device's own line
    SPAN = 15  # the whole trace or an iteration of the profiler ("PyTorch Profiler (0)"), not an event of the program
    COLLECTIVE = 16  # Kineto's collective_comm: a collective said a second time, outside the streams


BUSY_KINDS = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)

INTEGERS = "integers"  # int64
REALS = "reals"  # float64
TEXTS = "texts"  # int32 into `Trace.strings`

SIDE_COLUMNS: Mapping[str, str] = {
    "correlation": INTEGERS,  # joins a runtime call and the device work that it launched; reused by some tracers, so join on time too
    "external_id": INTEGERS,  # joins an operator and the runtime calls inside it; a parent's is smaller
    "ev_index": INTEGERS,  # "Ev Idx": order of begin in the process
    "sequence": INTEGERS,  # "Sequence number": joins forward and backward operators, together with forward_thread
    "forward_thread": INTEGERS,
    "step": INTEGERS,  # number of the step that this event marks (ProfilerStep#N, step_num); step markers only
    "python_id": INTEGERS,
    "python_parent_id": INTEGERS,
    "python_module_id": INTEGERS,
    "device": INTEGERS,
    "stream": INTEGERS,  # device queue
    "context": INTEGERS,
    "graph_id": INTEGERS,  # CUDA graph; on kernels and on their launch, where recorded
    "graph_node_id": INTEGERS,
    "bytes": INTEGERS,  # moved by a copy, set by a memset
    "queued": INTEGERS,
    "flops": REALS,
    "bytes_accessed": REALS,
    "occupancy_percent": REALS,
    "blocks_per_sm": REALS,
    "warps_per_sm": REALS,
    "registers": INTEGERS,
    "shared_memory": INTEGERS,
    "grid": TEXTS,  # JSON text "[1, 2, 3]"
    "block": TEXTS,
    "bandwidth_gb_s": REALS,  # as the source says
    "input_dims": TEXTS,  # JSON text
    "input_types": TEXTS,
    "call_stack": TEXTS,  # "file(line): function;…", innermost first
    "module_hierarchy": TEXTS,  # "top(Model).layer(Linear)"
    "scope": TEXTS,  # path of named scopes, "/" between (tf_op, name stack, op_name)
    "source": TEXTS,  # file:line where the op was made
    "hlo_module": TEXTS,
    "hlo_op": TEXTS,
    "hlo_category": TEXTS,
    "long_name": TEXTS,  # the HLO text of an op
    "run_id": INTEGERS,  # joins an XLA module on the host and on a device
    "group_id": INTEGERS,  # XPlane's step group
    "collective": TEXTS,  # "Collective name": allreduce, _allgather_base, …
    "in_elements": INTEGERS,  # of the collective's input on this rank
    "out_elements": INTEGERS,
    "dtype": TEXTS,  # of the collective's elements
    "group_size": INTEGERS,
    "group_name": TEXTS,
    "group_ranks": TEXTS,  # JSON text "[0, 1]", or shortened by the tracer with "..."
    "group_description": TEXTS,
    "collective_sequence": INTEGERS,  # "Seq": n-th collective of its group
    "peer": INTEGERS,  # source or destination rank of a send or receive
    "memory_kind_src": TEXTS,  # Pageable, Pinned, Device, … where it stands in args rather than in the name
    "memory_kind_dst": TEXTS,
    "kernel_backend": TEXTS,  # "triton", …
    "kernel_file": TEXTS,
    "kernel": TEXTS,  # launched kernel's name on a runtime call
}


@dataclass(frozen=True)
class Sparse:
    """Values of some events: `rows` (int32 or int64, ascending, unique) index the events, `values` stand beside them."""

    rows: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    def has(self, events: np.ndarray) -> np.ndarray:
        """Whether each of `events` (row numbers) has a value."""
        if not len(self.rows):
            return np.zeros(len(events), bool)
        place = np.minimum(np.searchsorted(self.rows, events), len(self.rows) - 1)
        return self.rows[place] == events

    def take(self, events: np.ndarray, missing: float) -> np.ndarray:
        """The value of each of `events` (row numbers, any order), `missing` where there is none; int64, or float64 of a column of reals.

        Values are kept in as few bytes as they need; nothing is to be computed in those.
        """
        events = np.asarray(events)
        found = np.full(len(events), missing, np.float64 if self.values.dtype.kind == "f" else np.int64)
        if len(self.rows):
            place = np.minimum(np.searchsorted(self.rows, events), len(self.rows) - 1)
            there = self.rows[place] == events
            found[there] = self.values[place[there]]
        return found


def empty_sparse(kind: str) -> Sparse:
    """A column that no event has."""
    return Sparse(np.empty(0, np.int32), np.empty(0, {INTEGERS: np.int64, REALS: np.float64, TEXTS: np.int32}[kind]))


class TrackKind(IntEnum):
    """What a track's events run on."""

    HOST = 0  # a thread
    STREAM = 1  # a queue of a device; its BUSY_KINDS are the device's work, annotations may be projected into it
    DERIVED = 2  # a line computed from other lines (XPlane's Steps, XLA Ops beside streams, name scopes): never counted as busy
    ASYNC = 3  # begin/end pairs joined by an id; may overlap
    SPANS = 4  # the profiler's own ("Spans", "Traces")


@dataclass(frozen=True)
class Track:
    """One row of a trace viewer. `process` and `thread` are the ids of the file as text; ids are unique within one trace only."""

    process: str
    thread: str
    process_name: str | None = None
    thread_name: str | None = None
    labels: str | None = None  # of the process: "CPU", "GPU 0"
    kind: TrackKind = TrackKind.HOST
    device: int | None = None
    stream: int | None = None
    sort_index: int | None = None  # of the process, as the file says

    @property
    def key(self) -> tuple:
        """Deterministic order: numeric ids by value, before textual ones."""
        return (_id_order(self.process), _id_order(self.thread), int(self.kind))


def _id_order(text: str) -> tuple[int, int, str]:
    digits = text[1:] if text.startswith("-") else text
    return (0, int(text), "") if digits.isascii() and digits.isdigit() and len(digits) < 20 else (1, 0, text)


@dataclass(frozen=True)
class Events:
    """Complete events (X, joined B/E and b/e pairs, XEvents). Arrays of one length, in the order that the module's docstring says.

    `start_ns`, `duration_ns` int64 (duration ≥ 0); `name`, `category` int32 into `Trace.strings`; `track` int32 into `Trace.tracks`;
    `kind` int8, a `Kind`.
    """

    start_ns: np.ndarray
    duration_ns: np.ndarray
    name: np.ndarray
    category: np.ndarray
    track: np.ndarray
    kind: np.ndarray

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True)
class Flows:
    """Ends of arrows (s, t, f), sorted by (category, id, time, phase). An arrow joins two slices: see `resolve`.

    `id` int64 (a hash where the file's is a text), `category` int32 into strings, `t_ns` int64, `track` int32, `phase` int8: 0 start,
    1 step, 2 finish.
    """

    id: np.ndarray
    category: np.ndarray
    t_ns: np.ndarray
    track: np.ndarray
    phase: np.ndarray


@dataclass(frozen=True)
class Memory:
    """Allocator events ("[memory]"), by time. `bytes` < 0 frees; `allocated`, `reserved`: totals after it, -1 where not recorded.

    `device_type` is torch's DeviceType (0 CPU, 1 CUDA, 20 HIP …), `device` its index; -1 where not recorded.
    """

    t_ns: np.ndarray
    bytes: np.ndarray
    allocated: np.ndarray
    reserved: np.ndarray
    device_type: np.ndarray
    device: np.ndarray
    track: np.ndarray
    op: np.ndarray | None = None  # int32 into strings: what asked for it, where the source says so itself; None: it does not


@dataclass(frozen=True)
class Marks:
    """Instant events other than the allocator's, by time: `t_ns` int64; `name`, `category` into strings, `track` into tracks."""

    t_ns: np.ndarray
    name: np.ndarray
    category: np.ndarray
    track: np.ndarray


@dataclass(frozen=True)
class Counter:
    """One sampled series of a process, by time; `name` is "counter.key" where one counter event has several keys."""

    process: str
    name: str
    t_ns: np.ndarray
    value: np.ndarray  # float64


@dataclass(frozen=True)
class Identity:
    """Who recorded the trace. `rank_from` says how the rank is known: "distributedInfo", "trainflash" (captured by us), "file name",
    "probe" (one of our own runs), or None."""

    rank: int | None = None
    world_size: int | None = None
    rank_from: str | None = None
    host: str | None = None
    pid: int | None = None
    backend: str | None = None
    process_groups: tuple[dict[str, Any], ...] = ()  # Kineto's pg_config: pg_name, pg_desc, pg_size, ranks


@dataclass(frozen=True)
class Quality:
    """How whole the trace is. Counts are exact; `notes` are sentences for people, deterministic.

    `truncated`: the file ends before its end (`cut_at`: byte offset in the uncompressed stream of the first byte that belongs to no
    complete event). `unparsed`: events that could not be read and were left out. `dropped`: events that the tracer itself says it lost.
    `event_cap`: the export cap that the count of events equals, None if none. `unmatched`: begins without end, ends without begin.
    """

    truncated: bool = False
    cut_at: int | None = None
    total_events: int = 0
    complete_events: int = 0
    metadata_events: int = 0
    unparsed: int = 0
    unmatched: int = 0
    without_time: int = 0
    negative_durations: int = 0
    dropped: int | None = None
    event_cap: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trace:
    """One process's (rank's, host's) recording."""

    source: str  # "kineto", "chrome", "xplane", "probe"
    file: str  # name inside the source, for people: never part of a summary's hashed part
    strings: tuple[str, ...]
    tracks: tuple[Track, ...]
    events: Events
    side: Mapping[str, Sparse]
    flows: Flows
    memory: Memory
    marks: Marks
    counters: tuple[Counter, ...]
    identity: Identity = field(default_factory=Identity)
    provenance: Mapping[str, Any] = field(default_factory=dict)  # plain JSON values: schemaVersion, versions, deviceProperties, XLA_FLAGS…
    quality: Quality = field(default_factory=Quality)
    base_ns: int | None = None  # what was added to the file's times
    read: frozenset[str] = frozenset(SIDE_COLUMNS)  # the side columns that were asked for; others were left in the file

    def column(self, name: str) -> Sparse:
        """The side column `name`; empty where the trace lacks it. Raises `KeyError` for a name that was not read."""
        if name not in self.read:
            raise KeyError(f"the side column {name!r} was not read")
        return self.side.get(name) or empty_sparse(SIDE_COLUMNS[name])

    def rows(self, *kinds: Kind) -> np.ndarray:
        """Row numbers of the events of these kinds, ascending (so per track in time)."""
        wanted = np.zeros(len(Kind), bool)
        wanted[list(kinds)] = True
        return np.flatnonzero(wanted[self.events.kind])

    def track_rows(self, track: int) -> slice:
        """The contiguous rows of one track."""
        first, last = np.searchsorted(self.events.track, [track, track + 1])
        return slice(int(first), int(last))

    def text(self, ids: Iterable[int]) -> Iterator[str]:
        """Strings of ids."""
        return (self.strings[number] for number in ids)

    def ids(self, keep) -> np.ndarray:
        """Ids of the strings that `keep` (str → bool) accepts: one call per distinct string, then `np.isin` over a column."""
        return np.asarray([number for number, text in enumerate(self.strings) if keep(text)], np.int32)


@dataclass(frozen=True)
class Profile:
    """All traces of one source, ordered by (rank, host, file), and what belongs to none of them alone."""

    traces: tuple[Trace, ...]
    origin: str  # what was read, as the user named it
    provenance: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Any] = field(default_factory=dict)  # xprof's aggregate tables, where that package is installed
    notes: tuple[str, ...] = ()  # what was chosen or left out, and why


def content_digest(traces: Sequence[Trace]) -> str:
    """sha256 of what was read of the traces: equal for equal content whatever the file's order, compression or name."""
    digest = hashlib.sha256()
    for trace in traces:
        for text in trace.strings:
            digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
        for track in trace.tracks:
            digest.update(f"{track.process}\0{track.thread}\0{int(track.kind)}\0".encode("utf-8", "surrogatepass"))
        side = {name: trace.side[name] for name in sorted(trace.side)}
        rows = {id(column.rows): column.rows for column in side.values()}
        place = {key: number for number, key in enumerate(rows)}
        for name, column in side.items():
            digest.update(f"{name}\0{place[id(column.rows)]}\0".encode())
            _add(digest, column.values)
        for array in rows.values():
            _add(digest, array)
        for table in (trace.events, trace.flows, trace.memory, trace.marks, *trace.counters):
            for value in vars(table).values():
                if isinstance(value, np.ndarray):
                    _add(digest, value)
                elif value is not None:
                    digest.update(str(value).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _add(digest: Any, values: np.ndarray) -> None:
    """The bytes of a column, whose type is the narrowest that holds its content, or one that is always the same."""
    digest.update(f"{values.dtype.str[1:]}{len(values)}\0".encode())
    digest.update(np.ascontiguousarray(values, values.dtype.newbyteorder("<")))
