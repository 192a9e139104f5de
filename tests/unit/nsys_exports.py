"""SQLite files as `nsys export --type sqlite` writes them, made to the documented schema, for tests of the reader."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TICK = 1_000  # ns
EPOCH = 1_700_000_000_000_000_000
PID, TID = 4242, 4243

_DEVICE = "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, "
_DEVICE += "streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, "
_CALL = "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, "
SCHEMA = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "ThreadNames": "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "TARGET_INFO_GPU": "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, uuid TEXT",
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER, cudaId INTEGER, pid INTEGER, uuid TEXT, numMultiprocessors INTEGER",
    "TARGET_INFO_SYSTEM_ENV": "globalVid INTEGER, devStateName TEXT, name TEXT NOT NULL, nameEnum INTEGER, value TEXT NOT NULL",
    "META_DATA_EXPORT": "name TEXT NOT NULL, value TEXT",
    "DIAGNOSTIC_EVENT": "timestamp INTEGER, timestampType INTEGER, source INTEGER, severity INTEGER, text TEXT, globalPid INTEGER",
    "MPI_RANKS": "globalTid INTEGER NOT NULL, rank INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_KERNEL": _DEVICE + "demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, "
    "registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, "
    "staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMCPY": _DEVICE + "bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER, "
    "graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMSET": _DEVICE + "value INTEGER NOT NULL, bytes INTEGER NOT NULL, graphNodeId INTEGER, memKind INTEGER",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": _DEVICE + "syncType INTEGER NOT NULL, eventId INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": _DEVICE + "graphId INTEGER, graphExecId INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": _CALL + "correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER, callchainId INTEGER",
    "OSRT_API": _CALL + "nameId INTEGER NOT NULL, returnValue INTEGER, nestingLevel INTEGER, callchainId INTEGER",
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER, "
    "text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER",
}
KERNEL, COPY = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"
RUNTIME, NVTX = "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"


class Export:
    """Rows by table; `write` makes the file. Times are given in µs."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.strings: dict[str, int] = {}

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings) + 1)

    def add(self, table: str, **row: Any) -> None:
        self.rows.setdefault(table, []).append(row)

    def device(self, table: str, start: int, length: int, correlation: int | None, pid: int = PID, device: int = 0, **row: Any) -> None:
        times = {"start": start * TICK, "end": (start + length) * TICK, "deviceId": device, "contextId": 1, "streamId": 7}
        self.add(table, **times, correlationId=correlation, globalPid=of_process(pid), **row)

    def kernel(self, name: str, start: int, length: int, correlation: int | None, **given: Any) -> None:
        shape = {"gridX": 1, "gridY": 2, "gridZ": 3, "blockX": 256, "blockY": 1, "blockZ": 1}
        own = {"registersPerThread": 32, "staticSharedMemory": 16, "dynamicSharedMemory": 48}
        ids = {"demangledName": self.string(name), "shortName": self.string(name.split("<")[0])}
        self.device(KERNEL, start, length, correlation, **(shape | own | ids | given))

    def call(self, name: str, start: int, length: int, correlation: int, pid: int = PID, tid: int = TID) -> None:
        place = {"start": start * TICK, "end": (start + length) * TICK, "eventClass": 0, "globalTid": of_thread(pid, tid)}
        self.add(RUNTIME, **place, correlationId=correlation, nameId=self.string(name), returnValue=0)

    def range(self, text: str, start: int, length: int | None, kind: int = 59, pid: int = PID, registered: bool = False) -> None:
        named = {"textId": self.string(text)} if registered else {"text": text}
        end = None if length is None else (start + length) * TICK
        self.add(NVTX, start=start * TICK, end=end, eventType=kind, globalTid=of_thread(pid, TID), **named)

    def write(self, path: Path, schema: Mapping[str, str] = SCHEMA, leave_out: Sequence[str] = ()) -> Path:
        """The file, with the tables that have rows; `leave_out`: columns that this version lacks."""
        for text, number in self.strings.items():
            self.add("StringIds", id=number, value=text)
        with sqlite3.connect(path) as database:
            for table, rows in self.rows.items():
                columns = [column for column in schema[table].split(", ") if column.split(" ")[0] not in leave_out]
                database.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
                known = [column.split(" ")[0] for column in columns]
                values = [
                    [row.get(column, 0 if "NOT NULL" in of else None) for column, of in zip(known, columns, strict=True)] for row in rows
                ]
                database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(known))})", values)
        database.close()
        return path


def of_process(pid: int) -> int:
    """The global id of a process: hardware and machine above its own."""
    return 1 << 56 | 2 << 48 | pid << 24


def of_thread(pid: int, tid: int) -> int:
    return of_process(pid) | tid


def training(steps: int = 3, pid: int = PID, device: int = 0, into: Export | None = None, shift: int = 0) -> Export:
    """A loop of steps of 1 ms: a batch is copied, an operator launches a kernel, the host waits for the device."""
    export = into or Export()
    for step in range(steps):
        at, number = 1_000 * step + 100, 10 * step
        export.range(f"step {step}", at, 1_000, pid=pid)
        export.call("cudaMemcpyAsync_v3020", at + 10, 20, number + 1, pid=pid)
        export.device(COPY, at + 40, 60, number + 1, pid=pid, device=device, bytes=4096, copyKind=1, srcKind=1, dstKind=2)
        export.range(f"aten::mm, seq = {step}, op_id = {step + 7}, sizes = [[64, 3], [3, 5]]", at + 100, 100, pid=pid, registered=True)
        export.call("cudaLaunchKernel_v7000", at + 110, 10, number + 2, pid=pid)
        export.kernel("void gemm<float>(int)", at + 150 + shift, 300, number + 2, pid=pid, device=device)
        export.call("cuLaunchKernelEx", at + 210, 10, number + 3, pid=pid)
        export.kernel("triton_red_fused_sum_0", at + 500 + shift, 100, number + 3, pid=pid, device=device)
        export.call("cudaStreamSynchronize_v3020", at + 300, 600, number + 4, pid=pid)
        export.device("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", at + 300, 600, number + 4, pid=pid, device=device, syncType=3)
    return export
