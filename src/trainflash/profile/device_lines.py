"""What the rows of a JAX, TensorFlow or XLA trace are, by the names of their plane (process) and line (thread).

The same names stand in XPlane protobufs and in the JSON that is derived from them. Source: OpenXLA's
`xla/tsl/profiler/utils/xplane_schema.cc` and `trace_utils.h`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainflash.profile.events import Kind, TrackKind

_DEVICE = re.compile(r"/device:(?P<type>[A-Za-z_]+):(?P<number>\d+)")
_STREAM = re.compile(r"Stream #(\d+)")
_API = re.compile(r"(?:(?P<driver>cu)|cuda|hip)[A-Z]")
_COPY = re.compile(r"mem(cpy|set)", re.IGNORECASE)

_DERIVED = {
    "Steps": Kind.DEVICE_STEP,
    "XLA Modules": Kind.DEVICE_MODULE,
    "XLA Ops": Kind.DEVICE_OP,
    "Async XLA Ops": Kind.DEVICE_OP,
    "XLA TraceMe": Kind.DEVICE_ANNOTATION,
    "TensorFlow Name Scope": Kind.DEVICE_ANNOTATION,
    "TensorFlow Ops": Kind.DEVICE_ANNOTATION,
    "Framework Name Scope": Kind.DEVICE_ANNOTATION,
    "Framework Ops": Kind.DEVICE_ANNOTATION,
    "Source code": Kind.DEVICE_ANNOTATION,
    "Source Code": Kind.DEVICE_ANNOTATION,
    "Launch Stats": Kind.OTHER,
    "Host Offload Ops": Kind.OTHER,
}
_HOST_PLANES = ("/host:CPU", "/host:TPU-runtime", "/host:python-tracer", "/host:CUPTI", "/host:ROCTRACER", "/host:metadata")


@dataclass(frozen=True)
class Line:
    """What a row is: `kind` is that of all its events, None where it depends on their names."""

    track: TrackKind
    kind: Kind | None
    device: int | None = None
    stream: int | None = None


def line_of(plane: str, line: str, plane_has_streams: bool) -> Line | None:
    """What the row is; None where the plane is none of XLA's.

    The ops of a TPU's plane are its work, since it has no streams; beside streams they are a second view of the same time.
    """
    device = _DEVICE.search(plane)
    if device is None:
        return Line(TrackKind.HOST, None) if plane.startswith(_HOST_PLANES) else None
    if device["type"] == "CUSTOM":
        return None
    number = int(device["number"])
    stream = _STREAM.match(line)
    if stream:
        return Line(TrackKind.STREAM, None, number, int(stream[1]))
    name = line.split(" #")[0]
    kind = _DERIVED.get(name)
    if name in ("XLA Ops", "Async XLA Ops") and not plane_has_streams:
        return Line(TrackKind.STREAM, Kind.KERNEL if name == "XLA Ops" else Kind.DEVICE_OP, number)
    return Line(TrackKind.DERIVED, Kind.OTHER if kind is None else kind, number)


def host_kind(name: str) -> Kind:
    """Kind of an event on a thread of the host: Python frames begin with "$", calls into CUDA and HIP bear their API's names."""
    if name.startswith("$"):
        return Kind.PYTHON
    found = _API.match(name)
    return Kind.ANNOTATION if found is None else Kind.DRIVER if found["driver"] else Kind.RUNTIME


def kind_by_name(track: TrackKind, name: str) -> Kind:
    """Kind of an event on a row whose `Line.kind` is None."""
    return stream_kind(name) if track is TrackKind.STREAM else host_kind(name)


def stream_kind(name: str) -> Kind:
    """Kind of an event on a device's queue."""
    copy = _COPY.match(name)
    return Kind.KERNEL if copy is None else Kind.MEMCPY if copy[1].lower() == "cpy" else Kind.MEMSET
