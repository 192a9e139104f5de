"""What NVIDIA Nsight Systems recorded, as `nsys export --type sqlite` writes it → one `Trace` per process that used a device.

Device work comes from CUPTI's tables, calls from those of the CUDA runtime and driver, ranges from NVTX. Ranges that PyTorch's
`emit_nvtx` opens are operators; a range named as a numbered step or iteration marks a step. Times are ns after the session's begin, whose
UTC time is added, so that reports of several ranks lie side by side as well as their machines' clocks agree.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from trainflash.errors import UsageError
from trainflash.profile.events import SIDE_COLUMNS, Identity, Kind, Quality, Trace, TrackKind
from trainflash.profile.sources.kineto_header import rank_in_name
from trainflash.profile.sources.nsys_process import ID_BITS, LOW, SHAPES, SHARED, Process
from trainflash.profile.sources.nsys_tables import EXPORT, MISSING, Block, Tables, opened
from trainflash.profile.sources.refusals import ROCPROF
from trainflash.profile.sources.values import LARGEST_NS

_CUPTI = "CUPTI_ACTIVITY_KIND_"
_PLACE = ("start", "end", "globalPid", "deviceId", "streamId", "contextId", "correlationId")
_LAUNCHED = ("demangledName", "shortName", "registersPerThread", *SHARED, *SHAPES["grid"], *SHAPES["block"], "graphNodeId", "graphId")
DEVICE_TABLES = {
    f"{_CUPTI}KERNEL": (Kind.KERNEL, _LAUNCHED),
    f"{_CUPTI}MEMCPY": (Kind.MEMCPY, ("bytes", "copyKind", "srcKind", "dstKind", "graphNodeId")),
    f"{_CUPTI}MEMSET": (Kind.MEMSET, ("bytes", "memKind", "graphNodeId")),
    f"{_CUPTI}GRAPH_TRACE": (Kind.KERNEL, ("graphId",)),
    f"{_CUPTI}SYNCHRONIZATION": (Kind.SYNC, ("syncType",)),
}
HOST_TABLES = {
    f"{_CUPTI}RUNTIME": Kind.RUNTIME,  # the driver's calls too: their names tell
    "CUDNN_EVENTS": Kind.ANNOTATION,
    "CUBLAS_EVENTS": Kind.ANNOTATION,
    "OSRT_API": Kind.OTHER,
    "PROFILER_OVERHEAD": Kind.OVERHEAD,
    f"{_CUPTI}OVERHEAD": Kind.OVERHEAD,
}
NVTX_TABLE = "NVTX_EVENTS"
_SESSION = "TARGET_INFO_SESSION_START_TIME"
_RECORD = "record with `nsys profile --trace=cuda,nvtx`, then export it"
_NO_PROCESS = 0
_TOLD = (2, 3)  # severities of nsys' own messages: warning, error
_OF_OTHERS = re.compile(r"No \w+ events collected|CUDA profiling might have not been started")  # what is here tells; of any process
_MOST_TOLD = 5


def read(path: Path, name: str, columns: Collection[str] = SIDE_COLUMNS) -> tuple[Trace, ...]:
    """One trace per process, by its first device. Raises `UsageError` where the file is damaged or no export of nsys."""
    with opened(path, name) as tables:
        if any(table.startswith("rocpd_") for table in tables.names):
            raise UsageError(f"{name} is a database of rocprofv3", ROCPROF)
        if not any(table in tables for table in (*DEVICE_TABLES, *HOST_TABLES, NVTX_TABLE)):
            if _SESSION in tables:
                raise UsageError(f"{name} is an export of nsys, but nothing of a program was recorded in it", _RECORD)
            raise UsageError(f"{name} is an SQLite database, but no export of nsys: it has no table {_CUPTI}KERNEL", EXPORT)
        return _Reader(tables, name, columns).read()


class _Reader:
    def __init__(self, tables: Tables, name: str, columns: Collection[str]) -> None:
        self.tables, self.name, self.columns = tables, name, columns
        self.processes: dict[int, Process] = {}
        self.strings: dict[int, str] = {}
        self.left_out: set[int] = set()

    def read(self) -> tuple[Trace, ...]:
        for table, (kind, columns) in DEVICE_TABLES.items():
            for block in self.tables.blocks(table, (*_PLACE, *columns)):
                for process, mine in self._by_process(block, "globalPid", frozenset()):
                    process.device(kind, _category(table), mine)
        working = frozenset(self.processes)
        for table, kind in HOST_TABLES.items():
            for block in self.tables.blocks(table, ("start", "end", "globalTid", "correlationId", "nameId")):
                for process, mine in self._by_process(block, "globalTid", working):
                    process.host(kind, _category(table), mine)
        for block in self.tables.blocks(NVTX_TABLE, ("start", "end", "globalTid", "eventType", "textId"), "text"):
            for process, mine in self._by_process(block, "globalTid", working):
                process.nvtx(mine)
        found = sorted(self.processes.values(), key=lambda process: (min(process.devices, default=1 << 62), process.pid))
        if not found:
            raise UsageError(f"{self.name} holds no events", _RECORD)
        return tuple(self._finished(process, alone=len(found) == 1) for process in found)

    def _by_process(self, block: Block, column: str, working: frozenset[int]) -> Iterator[tuple[Process, Block]]:
        """(process, its rows). Once it is known which processes used a device (`working`), rows of others are left out."""
        pids = np.where(block[column] == MISSING, _NO_PROCESS, (block[column] >> ID_BITS) & LOW)
        for pid in np.unique(pids).tolist():
            owner = self._owner(pid, working)
            if owner is None:
                self.left_out.add(pid)
                continue
            if owner not in self.processes:
                self.processes[owner] = Process(self.name, owner, self._string, self.columns)
            process = self.processes[owner]
            rows = np.flatnonzero(pids == pid)
            process.total += len(rows)
            yield process, block if len(rows) == len(block) else block.of(rows)

    @staticmethod
    def _owner(pid: int, working: frozenset[int]) -> int | None:
        """The process that these rows belong to. Where a version names none beside device work or calls, there was but one."""
        if not working or pid in working:
            return pid
        (first,) = working if len(working) == 1 else (None,)
        return first if _NO_PROCESS in (pid, first) else None

    def _string(self, number: int) -> str:
        if number not in self.strings:
            self.strings[number] = self.tables.string(number) or "(unnamed)"
        return self.strings[number]

    # What stands beside the events

    def _finished(self, process: Process, alone: bool) -> Trace:
        self._describe(process)
        base = next((value for value, _ in self._integers(_SESSION, "utcEpochNs", "utcEpochNs")), None)
        quality = Quality(
            total_events=process.total,
            without_time=process.without_time,
            negative_durations=process.negative,
            unmatched=process.open,
            notes=tuple(self._notes(process)),
        )
        kept = base is not None and 0 < base < LARGEST_NS
        return process.builder.finish(self._identity(process, alone), self._provenance(process), quality, base if kept else None)

    def _describe(self, process: Process) -> None:
        threads = {tid & ((1 << 2 * ID_BITS) - 1): name for name, tid in self._integers("ThreadNames", "nameId", "globalTid")}
        called = {pid >> ID_BITS & LOW: name for pid, name in self.tables.pairs("PROCESSES", "globalPid", "name") if isinstance(pid, int)}
        for number, track in enumerate(process.builder.tracks):
            if track.kind is TrackKind.HOST:
                pid, tid = int(track.process), int(track.thread)
                name = threads.get(pid << ID_BITS | tid)
                facts = {"process_name": called.get(pid), "thread_name": None if name is None else self._string(name)}
                process.builder.describe(number, labels="CPU", **{key: value for key, value in facts.items() if isinstance(value, str)})

    def _identity(self, process: Process, alone: bool) -> Identity:
        ranks = {tid >> ID_BITS & LOW: rank for tid, rank in self._integers("MPI_RANKS", "globalTid", "rank")}
        rank, rank_from = ranks.get(process.pid), "MPI"
        if rank is None and alone:
            rank, rank_from = rank_in_name(self.name), "file name"
        host = dict(self.tables.pairs("TARGET_INFO_SYSTEM_ENV", "name", "value")).get("Hostname")
        return Identity(
            rank,
            rank_from=None if rank is None else rank_from,
            host=host if isinstance(host, str) else None,
            pid=process.pid or None,
        )

    def _notes(self, process: Process) -> Iterator[str]:
        if f"{_CUPTI}GRAPH_TRACE" in self.tables and process.builder.has_side("graph_id"):
            yield "CUDA graphs are recorded whole: `nsys profile --cuda-graph-trace=node` tells their kernels apart"
        others = len(self.left_out - {_NO_PROCESS})
        if others:
            yield f"{others} processes that used no device are left out"
        told = self.tables.pairs("DIAGNOSTIC_EVENT", "severity", "text")
        said = {str(text).strip() for severity, text in told if severity in _TOLD and not _OF_OTHERS.match(str(text).strip())}
        yield from (f"nsys says: {text.splitlines()[0][:200]}" for text in sorted(said - {""})[:_MOST_TOLD])

    def _provenance(self, process: Process) -> dict[str, Any]:
        told = dict(self.tables.pairs("META_DATA_EXPORT", "name", "value"))
        versions = {"nsys_version": told.get("EXPORT_PRODUCT_VERSION"), "nsys_schema_version": told.get("EXPORT_SCHEMA_VERSION")}
        gpus = {number: str(name) for number, name in self.tables.pairs("TARGET_INFO_GPU", "id", "name") if name}
        gpu_of = dict(self._integers("TARGET_INFO_CUDA_DEVICE", "cudaId", "gpuId"))
        devices = [{"id": device, "name": gpus[gpu]} for device in sorted(process.devices) if (gpu := gpu_of.get(device, device)) in gpus]
        found = {key: str(value) for key, value in versions.items() if value}
        return found | ({"deviceProperties": devices} if devices else {})

    def _integers(self, table: str, key: str, value: str) -> list[tuple[int, int]]:
        return [pair for pair in self.tables.pairs(table, key, value) if all(isinstance(number, int) for number in pair)]


def _category(table: str) -> str:
    return table.removeprefix(_CUPTI).lower()
