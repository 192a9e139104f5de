"""A tar of traces, one per rank, plain or gzip, read as a stream: nothing is unpacked to disk. A cut archive gives what comes before."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from trainflash.errors import UsageError
from trainflash.profile.events import SIDE_COLUMNS, Profile
from trainflash.profile.sources import directories
from trainflash.profile.sources.files import read_stream
from trainflash.profile.sources.streams import Stream

_BLOCK = 1 << 20


def is_archive(path: Path) -> bool:
    """Whether the file is a tar, packed or not."""
    try:
        with path.open("rb") as file:
            first = next(iter(Stream(file)), b"")
    except OSError:
        return False
    return first[257:262] == b"ustar"


def read(path: Path, on_file: Callable[[str], None], columns: Collection[str] = SIDE_COLUMNS) -> Profile:
    """All traces of the archive that belong together, by the rules of `directories`."""
    names: list[str] = []
    with _members(path) as (members, faults):
        names += [name for name, _ in members]
    chosen = directories.choose(names, path.name)
    traces, skipped = [], list(chosen.notes)
    with _members(path) as (members, faults):
        for name, file in members:
            if name not in chosen.names:
                continue
            on_file(name)
            try:
                traces.append(read_stream(_Member(file, faults), name, chosen.xplane, columns))
            except UsageError as fault:
                skipped.append(fault.message)
    if faults:
        skipped.append(f"the archive ends before its end: {faults[0]}")
    if not traces:
        raise UsageError(f"{path.name} holds no trace that can be read", skipped[-1] if skipped else "name a tar of traces")
    return Profile(directories.by_rank(traces), str(path), notes=tuple(skipped))


@contextmanager
def _members(path: Path) -> Iterator[tuple[Iterator[tuple[str, BinaryIO]], list[str]]]:
    faults: list[str] = []
    with path.open("rb") as packed:
        stream = Stream(packed)
        yield _walk(stream, faults), faults
        faults += stream.cut_short


def _walk(stream: Stream, faults: list[str]) -> Iterator[tuple[str, BinaryIO]]:
    readable = _Readable(stream)
    try:
        with tarfile.open(fileobj=readable, mode="r|", bufsize=_BLOCK) as archive:
            for member in archive:
                if member.isfile():
                    yield member.name, archive.extractfile(member)
        if not readable.ends_with_zeros():
            faults.append("it lacks the mark of its end")
    except (tarfile.TarError, EOFError, zlib.error, OSError, ValueError) as fault:
        faults.append(str(fault))


class _Member:
    """One file of the archive; where the archive is cut or damaged it ends."""

    def __init__(self, file: BinaryIO, faults: list[str]) -> None:
        self._file, self._faults = file, faults

    def read(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except (tarfile.TarError, EOFError, OSError, ValueError) as fault:
            self._faults.append(str(fault))
            return b""


class _Readable:
    """A stream of chunks as a file that tarfile reads from."""

    def __init__(self, stream: Stream) -> None:
        self._chunks = iter(stream)
        self._rest = memoryview(b"")
        self._last = b""

    def ends_with_zeros(self) -> bool:
        """Whether the last block of the whole stream holds zeros only, as that of a complete tar does."""
        while self.read(_BLOCK):
            pass
        return len(self._last) == tarfile.BLOCKSIZE and not self._last.strip(b"\0")

    def read(self, size: int) -> bytes:
        parts, wanted = [], size
        while wanted:
            if not self._rest:
                self._rest = memoryview(next(self._chunks, b""))
                if not self._rest:
                    break
            part = self._rest[:wanted]
            self._rest = self._rest[len(part) :]
            wanted -= len(part)
            parts.append(part)
        data = b"".join(parts)
        self._last = (self._last + data[-tarfile.BLOCKSIZE :])[-tarfile.BLOCKSIZE :]
        return data
