"""Small synthetic traces in the styles of the profilers, for tests of the decoders."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

HOST, DEVICE = 4242, 0


def kineto(steps: int = 2, kernels: int = 5, *, old: bool = False, rank: int | None = 0) -> dict[str, Any]:
    """A window of a training loop: per step a marker, operators, launches, kernels, a copy, a collective, arrows and memory events."""
    categories = ("Operator", "Runtime", "Kernel", "Memcpy") if old else ("cpu_op", "cuda_runtime", "kernel", "gpu_memcpy")
    op, runtime, kernel, copy = categories
    thread: Any = str(HOST) if old else HOST
    events: list[dict[str, Any]] = [
        meta("process_name", HOST, 0, {"name": "python"}),
        meta("process_labels", HOST, 0, {"labels": "CPU"}),
        meta("process_name", DEVICE, 0, {"name": "python"}),
        meta("process_labels", DEVICE, 0, {"labels": "GPU 0"}),
        meta("thread_name", DEVICE, 7, {"name": "stream 7 "}),
        meta("thread_name", HOST, HOST, {"name": f"thread {HOST} (python)"}),
    ]
    time, number = 1_000_000, 0
    for step in range(steps):
        first = time
        for place in range(kernels):
            number += 1
            args: dict[str, Any] = {"External id": number, "Ev Idx": number, "Input Dims": [[64, 3], []], "Input type": ["float", ""]}
            events.append(x(op, f"aten::op{place}", HOST, thread, time, 40 if old else 40.125, args))
            launch = {"External id": number, "cbid": 211, "correlation": number}
            if old:
                launch = {"external id": number, "cbid": 211, "correlation": number}
            events.append(x(runtime, "cudaLaunchKernel", HOST, thread, time + 10, 5, launch))
            events.append(flow("s", "async" if old else "ac2g", number, HOST, thread, time + 10))
            device = {"device": 0, "context": 1, "stream": 7, "correlation": number, "grid": [1, 2, 3], "block": [256, 1, 1]}
            device |= {"external id" if old else "External id": number, "est. achieved occupancy %": 50}
            stream: Any = "stream 7" if old else 7
            name = f"kernel_{place}"
            if place == kernels - 1:
                name = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)"
                device |= {"Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": 2, "dtype": "Float"}
                device |= {"Process Group Name": "0", "Process Group Ranks": "[0, 1]"}
            events.append(x(kernel, name, DEVICE, stream, time + 30, 20, device))
            events.append(flow("f", "async" if old else "ac2g", number, DEVICE, stream, time + 30))
            time += 50
        memcpy = {"device": 0, "context": 1, "stream": 7, "correlation": 10_000 + step, "bytes": 4096, "memory bandwidth (GB/s)": 1.5}
        events.append(x(copy, "Memcpy HtoD (Pinned -> Device)", DEVICE, "stream 7" if old else 7, time + 30, 3, memcpy))
        events.append(instant("[memory]", HOST, thread, time, {"Device Type": 1, "Device Id": 0, "Bytes": 512 if step else -512}))
        number += 1
        marker = op if old else "user_annotation"
        events.append(x(marker, f"ProfilerStep#{step + 3}", HOST, thread, first, time + 45 - first, {"External id": number}))
        if not old:
            events.append(
                x("gpu_user_annotation", f"ProfilerStep#{step + 3}", DEVICE, 7, first + 30, time - first, {"External id": number})
            )
        time += 100
    events.append(x("Trace", "PyTorch Profiler (0)", "Spans", "PyTorch Profiler", 1_000_000, time - 1_000_000, {"Op count": number}))
    events.append({"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 99_999_999})
    made: dict[str, Any] = {"schemaVersion": 1}
    if rank is not None:
        made["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
    return {**made, "traceEvents": events, "traceName": "/somewhere/trace.json"}


def x(category: str, name: str, pid: Any, tid: Any, ts: float, dur: float, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def meta(name: str, pid: Any, tid: Any, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "ts": 0, "args": args}


def flow(phase: str, category: str, number: Any, pid: Any, tid: Any, ts: float) -> dict[str, Any]:
    return {"ph": phase, "id": number, "pid": pid, "tid": tid, "ts": ts, "cat": category, "name": category}


def instant(name: str, pid: Any, tid: Any, ts: float, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "i", "s": "t", "name": name, "pid": pid, "tid": tid, "ts": ts, "args": args}


def text(trace: Any, *, indent: int | None = None) -> bytes:
    return json.dumps(trace, indent=indent).encode()


def shuffled(trace: dict[str, Any], seed: int) -> dict[str, Any]:
    events = list(trace["traceEvents"])
    random.Random(seed).shuffle(events)
    return {**trace, "traceEvents": events}


# XPlane


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: int | bytes | float) -> bytes:
    """One field: a varint, length-delimited bytes, or a double."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    return varint(number << 3) + varint(value)


def stat(number: int, form: int, value: int | bytes | float) -> bytes:
    return field(1, number) + field(form, value)


STATS = {1: "correlation_id", 2: "tf_op", 3: "jit(step)/layer/dot_general", 4: "model_flops", 5: "hlo_category", 6: "step_num",
         7: "kernel_details", 8: "memcpy_details"}  # fmt: skip


def plane(name: str, lines: list[bytes], events: dict[int, bytes]) -> bytes:
    """An XPlane; `events`: the serialized XEventMetadata of each id."""
    made = field(2, name.encode()) + b"".join(field(3, line) for line in lines)
    for number, metadata in events.items():
        made += field(4, field(1, number) + field(2, field(1, number) + metadata))
    for number, text_of in STATS.items():
        made += field(5, field(1, number) + field(2, field(1, number) + field(2, text_of.encode())))
    return made


def line(number: int, name: str, timestamp_ns: int, events: list[tuple[int, int, int, list[bytes]]]) -> bytes:
    """An XLine; each event is (metadata id, offset in ps, duration in ps, stats)."""
    made = field(1, number) + field(2, name.encode()) + field(3, timestamp_ns)
    for metadata, offset, duration, stats in events:
        made += field(4, field(1, metadata) + field(2, offset) + field(3, duration) + b"".join(field(4, each) for each in stats))
    return made


def xspace(count: int = 4) -> bytes:
    """A GPU with a stream and a host with a thread, `count` events each."""
    kernels = []
    for number in range(count):
        stats = [stat(1, 3, number + 100), stat(2, 7, 3), stat(7, 5, b"regs:32 grid:16,1,1 block:256,1,1 occ_pct:50")]
        kernels.append((1 + number % 2, number * 10_000_000, 5_000_500 + number, stats))
    device = plane(
        "/device:GPU:0",
        [line(13, "Stream #13(Compute,MemcpyH2D)", 1000, kernels)],
        {1: field(2, b"gemm_kernel") + field(5, stat(4, 2, 2.5e9)), 2: field(2, b"MemcpyH2D")},
    )
    calls = [(9, number * 10_000_000, 900_000, [stat(1, 3, number + 100)]) for number in range(count)]
    host = plane("/host:CPU", [line(7, "python", 500, calls)], {9: field(2, b"cuLaunchKernel")})
    return field(1, device) + field(1, host) + field(4, b"host-a")
