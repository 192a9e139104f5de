"""Memory snapshots of PyTorch (`torch.cuda.memory._dump_snapshot`) → `Trace`: allocations with the line that asked for each.

Format: a pickle of plain lists and dicts, `segments` (what is reserved now) and `device_traces` (what was done, oldest first, as many
entries as `max_entries` let it keep). Only plain values are unpickled: a file that names any class or function is refused unread.
Totals are counted back from the last state, so that they hold although the beginning of the history is missing.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

import numpy as np

from trainflash.errors import UsageError
from trainflash.profile.building import TraceBuilder
from trainflash.profile.events import Kind, Quality, Trace

MAGIC = tuple(bytes((0x80, version)) for version in range(2, 6))
MEND = "name a snapshot that torch.cuda.memory._dump_snapshot wrote"
ON_DEVICE = 1  # torch's DeviceType of CUDA
_ALLOCATED = {"alloc": 1, "free_completed": -1}
_RESERVED = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
_LIBRARY = re.compile(r"site-packages|dist-packages|/torch/|/lib/python|<frozen")


class _Plain(pickle.Unpickler):
    """Lists, dicts, texts and numbers, nothing that could run."""

    def find_class(self, module: str, name: str) -> Any:
        raise UsageError(f"this pickle names {module}.{name}: it is no memory snapshot, and was not read", MEND)


def read(chunks: Iterable[bytes], file: str) -> Trace:
    """The allocator's history. Raises `UsageError` for a pickle that is no snapshot, or is cut."""
    try:
        given = _Plain(BytesIO(b"".join(chunks))).load()
    except UsageError:
        raise
    except Exception as fault:  # a damaged pickle raises whatever its opcodes lead to
        raise UsageError(f"{file} is a damaged pickle: {fault}", MEND) from None
    if not isinstance(given, Mapping) or not isinstance(given.get("device_traces"), list):
        raise UsageError(f"{file} is a pickle, but no memory snapshot: it has no device_traces", MEND)
    builder = TraceBuilder("memory snapshot", file)
    track = builder.track("memory", "history")
    span: list[int] = []
    for device, history in enumerate(given["device_traces"]):
        segments = [each for each in given.get("segments", ()) if each.get("device") == device]
        span += _device(builder, track, device, [each for each in history if isinstance(each, Mapping)], segments)
    if not span:
        raise UsageError(
            f"{file} holds no history of allocations",
            "call torch.cuda.memory._record_memory_history() before the steps of interest",
        )
    whole = np.asarray([min(span)], np.int64)
    number = np.asarray([builder.strings["memory history"]], np.int32)
    builder.add_events(
        start_ns=whole, duration_ns=np.asarray([max(span) - min(span)], np.int64), name=number, category=number,
        track=np.asarray([track], np.int32), kind=np.asarray([Kind.OTHER], np.int8),
    )  # fmt: skip
    note = "a memory snapshot: what was allocated, where and when; no time of any operator"
    return builder.finish(quality=Quality(total_events=len(span) // 2, notes=(note,)))


def _device(builder: TraceBuilder, track: int, device: int, history: list, segments: list) -> list[int]:
    """Adds the history of one device; its first and last time in ns."""
    kept = [each for each in history if each.get("action") in _ALLOCATED or each.get("action") in _RESERVED]
    if not kept:
        return []
    sizes = np.asarray([int(each.get("size", 0)) for each in kept], np.int64)
    of = [str(each["action"]) for each in kept]
    changed = sizes * np.asarray([_ALLOCATED.get(action, 0) for action in of], np.int64)
    reserved = sizes * np.asarray([_RESERVED.get(action, 0) for action in of], np.int64)
    ends = [sum(int(each.get(name, 0)) for each in segments) for name in ("allocated_size", "total_size")]
    times = np.asarray([int(each.get("time_us", place)) * 1000 for place, each in enumerate(kept)], np.int64)
    where = np.flatnonzero(changed != 0)
    totals = [end - (change.sum() - np.cumsum(change)) for end, change in zip(ends, (changed, reserved), strict=True)]
    if len(where):
        builder.add_memory(
            t_ns=times[where],
            bytes=changed[where],
            allocated=totals[0][where],
            reserved=totals[1][where],
            device_type=np.full(len(where), ON_DEVICE, np.int32),
            device=np.full(len(where), device, np.int32),
            track=np.full(len(where), track, np.int32),
            op=np.asarray([builder.strings[_line(kept[place])] for place in where.tolist()], np.int32),
        )
    return [int(times.min()), int(times.max())]


def _line(entry: Mapping[str, Any]) -> str:
    """The innermost Python line of the owner's that asked for it, else of a library."""
    frames = [each for each in entry.get("frames") or () if isinstance(each, Mapping)]
    python = [each for each in frames if str(each.get("filename", "")).endswith(".py")]
    own = next((each for each in python if not _LIBRARY.search(str(each["filename"]))), (python or [None])[0])
    return "(no Python line)" if own is None else f"{own.get('filename')}:{own.get('line')} {own.get('name')}"
