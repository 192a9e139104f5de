"""What AMD's rocprofv3 writes with `--output-format json` → one `Trace`, with all processes that the file holds.

Device work comes from `kernel_dispatch` and `memory_copy`, calls from `hip_api`, `hsa_api` and `rccl_api`, ranges of roctx from
`marker_api`; a call and the work that it launched share `correlation_id.internal`. Times are ns of the host's own clock. The records stand
last in the file, so of one that is cut those before the cut are read. Format: ROCprofiler-SDK, `generateJSON.cpp`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from trainflash.errors import UsageError
from trainflash.profile.building import TraceBuilder
from trainflash.profile.events import SIDE_COLUMNS, Identity, Quality, Trace, TrackKind
from trainflash.profile.sources import amd_names
from trainflash.profile.sources.kineto_header import rank_in_name
from trainflash.profile.sources.values import LARGEST_NS, LONGEST_NS

ROOT = "rocprofiler-sdk-tool"
_BEGINS = re.compile(rb'\{\s*"rocprofiler-sdk-tool"\s*:')
_RECORDS = ("kernel_dispatch", "memory_copy", "hip_api", "hsa_api", "rccl_api", "marker_api")
_MOST_TRIED = 64  # ends of objects before a cut at which the rest may be closed
_CLOSED = b"]}}]}"
_IDS = (1 << 62) - 1  # ids are kept in 63 bits
MEND = "name a file that rocprofv3 finished writing"


class _Handle(msgspec.Struct, gc=False):
    handle: int = 0


class _Ids(msgspec.Struct, gc=False):
    internal: int = 0


class _Dispatch(msgspec.Struct, gc=False):
    agent_id: _Handle = msgspec.field(default_factory=_Handle)
    queue_id: _Handle = msgspec.field(default_factory=_Handle)
    kernel_id: int = 0


class _Record(msgspec.Struct, gc=False):
    kind: int = 0
    operation: int = 0
    thread_id: int = 0
    correlation_id: _Ids = msgspec.field(default_factory=_Ids)
    start_timestamp: int = 0
    end_timestamp: int = 0
    dispatch_info: _Dispatch | None = None
    stream_id: _Handle | None = None
    src_agent_id: _Handle | None = None
    dst_agent_id: _Handle | None = None
    bytes: int | None = None


class _Buffers(msgspec.Struct):
    kernel_dispatch: list[_Record] = []
    memory_copy: list[_Record] = []
    hip_api: list[_Record] = []
    hsa_api: list[_Record] = []
    rccl_api: list[_Record] = []
    marker_api: list[_Record] = []


class _Names(msgspec.Struct):
    kind: str = ""
    operations: list[str] = []


class _Message(msgspec.Struct):
    key: int
    value: str


class _Strings(msgspec.Struct):
    buffer_records: list[_Names] = []
    marker_api: list[_Message] = []


class _Kernel(msgspec.Struct):
    kernel_id: int = 0
    formatted_kernel_name: str = ""
    demangled_kernel_name: str = ""
    kernel_name: str = ""


class _Agent(msgspec.Struct):
    id: _Handle = msgspec.field(default_factory=_Handle)
    type: int = 0
    node_id: int = 0
    name: str = ""
    product_name: str = ""


class _Metadata(msgspec.Struct):
    pid: int = 0


class _Process(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    agents: list[_Agent] = []
    strings: _Strings = msgspec.field(default_factory=_Strings)
    kernel_symbols: list[_Kernel] = []
    buffer_records: _Buffers = msgspec.field(default_factory=_Buffers)


class _File(msgspec.Struct):
    processes: list[_Process] = msgspec.field(name=ROOT)


def seems(begin: bytes) -> bool:
    """Whether a text that begins so is such a file."""
    return _BEGINS.match(begin) is not None


def read(chunks: Iterable[bytes], name: str, cut_short: Iterable[str] = (), columns: Collection[str] = SIDE_COLUMNS) -> Trace:
    """The trace in this text. Raises `UsageError` where it is damaged before its records, or holds none."""
    data = b"".join(chunks)
    processes, cut_at = _decoded(data, name)
    reader = _Reader(name, columns)
    for process in processes:
        reader.add(process)
    if not reader.total:
        raise UsageError(f"{name} holds no records", "record with `rocprofv3 --hip-trace --kernel-trace --memory-copy-trace`")
    return reader.finish(list(cut_short), cut_at)


def _decoded(data: bytes, name: str) -> tuple[list[_Process], int | None]:
    """(the processes, where the text is cut: None for a whole one)."""
    decoder = msgspec.json.Decoder(_File)
    try:
        return decoder.decode(data).processes, None
    except (ValueError, RecursionError) as error:
        fault = error
    end = len(data)
    if "truncated" in str(fault):
        for _ in range(_MOST_TRIED):
            end = data.rfind(b"}", 0, end)
            if end < 0:
                break
            try:
                processes = decoder.decode(data[: end + 1] + _CLOSED).processes
            except (ValueError, RecursionError):
                continue
            if any(getattr(process.buffer_records, table) for process in processes for table in _RECORDS):
                return processes, end + 1
        raise UsageError(f"{name} ends before its records (buffer_records): only what stands before them is there", MEND)
    raise UsageError(f"{name} is damaged: {fault}", MEND)


class _Reader:
    def __init__(self, name: str, columns: Collection[str]) -> None:
        self.name = name
        self.builder = TraceBuilder("rocprofv3", name, columns)
        self.total = self.without_time = self.negative = self.endless = 0
        self.devices: dict[int, str] = {}

    def add(self, process: _Process) -> None:
        """The records of one process."""
        gpus = sorted(
            (agent for agent in process.agents if agent.type == amd_names.GPU), key=lambda agent: (agent.node_id, agent.id.handle)
        )
        number = {agent.id.handle: place for place, agent in enumerate(gpus)}
        self.devices |= {place: agent.product_name or agent.name for place, agent in enumerate(gpus)}
        kernels = {
            each.kernel_id: each.formatted_kernel_name or each.demangled_kernel_name or each.kernel_name for each in process.kernel_symbols
        }
        messages = {each.key: each.value for each in process.strings.marker_api}
        operations = [each.operations for each in process.strings.buffer_records]
        for table in _RECORDS:
            records = self._timed(getattr(process.buffer_records, table))
            if records:
                self._table(table, records, _Facts(process.metadata.pid, number, kernels, messages, operations))

    def _timed(self, records: list[_Record]) -> list[_Record]:
        self.total += len(records)
        kept = [each for each in records if 0 < each.start_timestamp < LARGEST_NS]
        self.without_time += len(records) - len(kept)
        return kept

    def _table(self, table: str, records: list[_Record], facts: _Facts) -> None:
        builder, kind = self.builder, amd_names.KINDS[table]
        start = np.fromiter((each.start_timestamp for each in records), np.int64, len(records))
        end = np.fromiter((min(each.end_timestamp, LARGEST_NS) for each in records), np.int64, len(records))
        self.negative += int((end < start).sum())
        self.endless += int((end - start > LONGEST_NS).sum())
        length = np.where(end - start > LONGEST_NS, 0, np.maximum(end - start, 0))
        on_device = table in ("kernel_dispatch", "memory_copy")
        places = [facts.device_and_stream(each) for each in records] if on_device else []
        tracks = [self._stream(*place) for place in places] if on_device else [self._thread(facts.pid, each) for each in records]
        ranges = [amd_names.marker(facts.name(table, each)) for each in records] if table == "marker_api" else None
        names = [each.name for each in ranges] if ranges else [facts.name(table, each) for each in records]
        kinds = np.asarray([each.kind for each in ranges], np.int8) if ranges else np.full(len(records), kind, np.int8)
        side: dict[str, tuple[np.ndarray | None, np.ndarray]] = {
            "correlation": (None, np.asarray([each.correlation_id.internal & _IDS for each in records], np.int64))
        }
        if on_device:
            for column, values in zip(("device", "stream"), zip(*places, strict=True), strict=True):
                side[column] = (None, np.asarray(values, np.int64))
        _put(side, "bytes", [each.bytes for each in records] if table == "memory_copy" else [])
        _put(side, "step", [each.step for each in ranges] if ranges else [])
        builder.add_events(
            side,
            start_ns=start,
            duration_ns=length,
            name=np.asarray([builder.strings[text] for text in names], np.int32),
            category=np.full(len(records), builder.strings[table], np.int32),
            track=np.asarray(tracks, np.int32),
            kind=kinds,
        )

    def _stream(self, device: int, stream: int) -> int:
        track = self.builder.track(f"GPU {device}", str(stream), TrackKind.STREAM)
        self.builder.describe(track, thread_name=f"stream {stream}", labels=f"GPU {device}", device=device, stream=stream)
        return track

    def _thread(self, pid: int, record: _Record) -> int:
        return self.builder.track(str(pid), str(record.thread_id))

    def finish(self, notes: list[str], cut_at: int | None) -> Trace:
        """The trace of all processes that were added."""
        if self.endless:
            notes.append(f"{self.endless} events whose duration no recording can hold: they count without a length")
        quality = Quality(
            truncated=cut_at is not None or bool(notes and cut_at),
            cut_at=cut_at,
            total_events=self.total,
            without_time=self.without_time,
            negative_durations=self.negative,
            notes=tuple(notes),
        )
        rank = rank_in_name(self.name)
        found: dict[str, Any] = {
            "deviceProperties": [{"id": number, "name": name} for number, name in sorted(self.devices.items()) if name]
        }
        return self.builder.finish(Identity(rank, rank_from=None if rank is None else "file name"), found, quality)


class _Facts:
    """What the strings of one process say about its records."""

    def __init__(
        self, pid: int, gpus: dict[int, int], kernels: dict[int, str], messages: dict[int, str], operations: Sequence[Sequence[str]]
    ) -> None:
        self.pid = pid
        self._gpus, self._kernels, self._messages, self._operations = gpus, kernels, messages, operations

    def name(self, table: str, record: _Record) -> str:
        """What a record is called."""
        if table == "kernel_dispatch" and record.dispatch_info is not None:
            return self._kernels.get(record.dispatch_info.kernel_id) or f"kernel {record.dispatch_info.kernel_id}"
        known = self._operations[record.kind] if 0 <= record.kind < len(self._operations) else ()
        operation = known[record.operation] if 0 <= record.operation < len(known) else "(unnamed)"
        if table == "memory_copy":
            return amd_names.copy(operation)
        return self._messages.get(record.correlation_id.internal, operation) if table == "marker_api" else operation

    def device_and_stream(self, record: _Record) -> tuple[int, int]:
        """The device of this work, by number, and its stream; where no stream is told, its queue."""
        dispatch = record.dispatch_info
        agents = [dispatch.agent_id] if dispatch else [record.dst_agent_id, record.src_agent_id]
        device = next((self._gpus[each.handle] for each in agents if each is not None and each.handle in self._gpus), 0)
        stream = record.stream_id or (dispatch.queue_id if dispatch else None)
        return device, stream.handle if stream is not None and stream.handle < 1 << 62 else 0


def _put(side: dict[str, tuple[np.ndarray | None, np.ndarray]], column: str, values: Sequence[int | None]) -> None:
    rows = [row for row, value in enumerate(values) if value is not None]
    if rows:
        side[column] = (np.asarray(rows, np.int64), np.asarray([values[row] for row in rows], np.int64))
