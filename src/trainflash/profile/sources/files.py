"""One file → its trace, or those of its processes: what it holds is seen in its first bytes, not in its name."""

from __future__ import annotations

import io
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

from trainflash.errors import UsageError
from trainflash.profile.events import SIDE_COLUMNS, Trace
from trainflash.profile.sources import chrome, memory_snapshot, nsys, xplane
from trainflash.profile.sources.streams import Stream

_SQLITE = b"SQLite format 3\0"
_KNOWN = (
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"RIFF", "a picture or a sound"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive"),
    (_SQLITE, "an SQLite database that is packed"),
    (b"\x28\xb5\x2f\xfd", "a zstandard file"),
    (b"\xfd7zXZ", "an xz file"),
    (b"BZh", "a bzip2 file"),
    (b"\x7fELF", "a program"),
)
_XPLANE_NAMES = (".pb", ".pb.gz", ".xplane")
_REPORTS = (".nsys-rep", ".qdrep")
MEND = (
    "name a Kineto, Chrome or Perfetto JSON trace, plain, .gz or .tar, an .xplane.pb, the .sqlite that nsys exported, "
    "or a memory snapshot of torch"
)


def read_file(path: Path, name: str, xplane_wanted: bool = False, columns: Collection[str] = SIDE_COLUMNS) -> tuple[Trace, ...]:
    """The traces in this file; `xplane_wanted`: it is a protobuf whatever its name. `columns`: the side columns wanted.

    Raises `UsageError` if it holds none.
    """
    if name.endswith(_REPORTS):
        raise UsageError(f"{name} is a report of nsys in its own format", "`nsys export --type sqlite` makes a file that can be read")
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
    for magic, what in _KNOWN:
        if first.startswith(magic):
            raise UsageError(f"{name} is no trace but {what}", MEND)
    if first[257:262] == b"ustar":
        raise UsageError(f"{name} is a tar inside an archive", "unpack it and name its directory with --profile-dir")
    together = _again(first, chunks)
    if first.startswith(memory_snapshot.MAGIC):
        return memory_snapshot.read(together, name)
    if xplane_wanted or name.endswith(_XPLANE_NAMES):
        if stream.packed or not _seekable(file):
            return xplane.read(together, name, stream.cut_short, columns)
        return xplane.read_file(file, name, columns=columns)
    if first.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        raise UsageError(f"{name} is no trace: it is neither JSON nor named .xplane.pb", MEND)
    return chrome.read(together, name, stream.cut_short, columns=columns)


def _seekable(file: BinaryIO) -> bool:
    return isinstance(file, io.BufferedReader) and file.seekable()


def _again(first: bytes, chunks):
    yield first
    yield from chunks
