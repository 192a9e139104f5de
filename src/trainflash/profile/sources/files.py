"""One file → its trace, or those of its processes: what it holds is seen in its first bytes, not in its name."""

from __future__ import annotations

import io
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

from trainflash.errors import UsageError
from trainflash.profile.events import SIDE_COLUMNS, Trace
from trainflash.profile.sources import chrome, memory_snapshot, nsys, perfetto, rocprof, xplane
from trainflash.profile.sources.refusals import refuse_by_content, refuse_by_name
from trainflash.profile.sources.streams import Stream, as_utf8

_SQLITE = b"SQLite format 3\0"
_XPLANE_NAMES = (".pb", ".pb.gz", ".xplane")
_PERFETTO_NAMES = (".pftrace", ".perfetto-trace", ".perfetto", ".pftrace.gz", ".perfetto-trace.gz")
MEND = (
    "name a JSON trace of Kineto, Chrome, Perfetto or rocprofv3, plain, .gz or .tar, an .xplane.pb, a .pftrace, "
    "the .sqlite that nsys exported, or a memory snapshot of torch"
)


def read_file(path: Path, name: str, xplane_wanted: bool = False, columns: Collection[str] = SIDE_COLUMNS) -> tuple[Trace, ...]:
    """The traces in this file; `xplane_wanted`: it is a protobuf whatever its name. `columns`: the side columns wanted.

    Raises `UsageError` if it holds none.
    """
    refuse_by_name(name)
    try:
        with path.open("rb") as file:
            if file.read(len(_SQLITE)) == _SQLITE:
                return nsys.read(path, name, columns)
            file.seek(0)
            return (read_stream(file, name, xplane_wanted, columns),)
    except OSError as fault:
        raise UsageError(f"{path} cannot be read: {fault.strerror or fault}", MEND) from None


def read_stream(file: BinaryIO, name: str, xplane_wanted: bool = False, columns: Collection[str] = SIDE_COLUMNS) -> Trace:
    """The trace that this open file holds."""
    stream = Stream(file)
    chunks = iter(stream)
    first = next(chunks, b"")
    if not first.strip():
        damaged = "; ".join(stream.cut_short)
        raise UsageError(f"{name} is empty" + (f": {damaged}" if damaged else ""), "name a trace that the profiler finished writing")
    refuse_by_content(first, name, MEND)
    together = _again(first, chunks)
    if first.startswith(memory_snapshot.MAGIC):
        return memory_snapshot.read(together, name)
    if xplane_wanted or name.endswith(_XPLANE_NAMES):
        if stream.packed or not _seekable(file):
            return xplane.read(together, name, stream.cut_short, columns)
        return xplane.read_file(file, name, columns=columns)
    begin = b"".join(as_utf8([first[:256]])).lstrip(b"\xef\xbb\xbf \t\r\n")
    if name.endswith(_PERFETTO_NAMES) or (begin[:1] not in (b"{", b"[") and perfetto.seems(first)):
        return perfetto.read(together, name, stream.cut_short, columns)
    if begin[:1] not in (b"{", b"["):
        raise UsageError(f"{name} is no trace: it is neither JSON nor named .xplane.pb", MEND)
    together = as_utf8(together)
    if rocprof.seems(begin):
        return rocprof.read(together, name, stream.cut_short, columns)
    return chrome.read(together, name, stream.cut_short, columns=columns)


def _seekable(file: BinaryIO) -> bool:
    return isinstance(file, io.BufferedReader) and file.seekable()


def _again(first: bytes, chunks):
    yield first
    yield from chunks
