"""`tuning_log.yaml`: everything that was tried and decided, one YAML document an entry, appended only.

Each document begins with `---` and ends with `...`; that end mark is written last, so a document without it was torn by a kill and a
document with it is whole. An append is one write under an exclusive lock, synced before it returns: writers in several processes lose
nothing, and a kill at any moment costs at most the entry being written. The next append cuts a torn tail aside into `<log>.torn-<n>`.
"""

from __future__ import annotations

import dataclasses
import errno
import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainflash import redact, schema
from trainflash.errors import UsageError
from trainflash.schema import LogEntry, PhaseStat

_BEGIN = b"---\n"
_END = b"...\n"


@dataclass(frozen=True)
class Log:
    """What a log file holds. `torn`: its last document was cut short and is not among the entries."""

    entries: tuple[LogEntry, ...]
    torn: bool


def append(path: Path, entry: LogEntry) -> None:
    """Add `entry` to the log at `path`, secrets redacted; durable when it returns.

    Raises `UsageError` when the log cannot be written (no rights, disk full); the log is then as it was.
    """
    document = _BEGIN + schema.dump_yaml(_lean(_redacted(entry))).encode() + _END
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path) as file:
            _mend(path, file)
            _write_whole(file, document)
        _sync_folder(path.parent)
    except OSError as bad:
        raise UsageError(
            f"{path}: the entry was not written: {bad.strerror or bad}", "make room or give write access, then run it again"
        ) from None


def read(path: Path) -> Log:
    """All whole entries of the log, oldest first; no entries where there is no log yet.

    Raises `UsageError` when the file cannot be read or a whole document is not a `tuning_log.v1` entry (edited by hand).
    """
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            data = file.read()
    except FileNotFoundError:
        return Log((), torn=False)
    except OSError as bad:
        raise UsageError(f"{path}: {bad.strerror or bad}", "give read access to the log") from None
    whole = _whole_length(data)
    try:
        text = data[:whole].decode()
    except UnicodeDecodeError as bad:
        line = data.count(b"\n", 0, bad.start) + 1
        raise UsageError(f"{path}:{line}: is not UTF-8", "mend or remove that document") from None
    documents = schema.load_yaml_documents(text, str(path))
    entries = tuple(
        schema.from_plain(LogEntry, document, f"{path} (entry {n})") for n, document in enumerate(documents, 1) if document is not None
    )
    return Log(entries, torn=bool(data[whole:].strip()))


def with_after(entries: Sequence[LogEntry]) -> tuple[LogEntry, ...]:
    """`entries`, each accepted experiment with the phases of the diagnosis that was made on top of it, where there is one."""
    after: dict[int, dict[str, PhaseStat]] = {}
    found: list[LogEntry] = []
    for entry in reversed(entries):
        if entry.kind == "diagnosis" and entry.experiment is not None:
            after[entry.experiment] = entry.before
        elif entry.kind == "sandbox":  # numbers begin anew
            after.clear()
        elif entry.kind == "experiment" and entry.decision == "accepted":
            entry = dataclasses.replace(entry, after=after.get(entry.experiment or 0, {}))
        found.insert(0, entry)
    return tuple(found)


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """A descriptor of the log, opened for appending and locked against other writers until the block ends."""
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


def _mend(path: Path, file: int) -> None:
    """Move a torn tail out of the log: first copied and synced, then cut off."""
    size = os.fstat(file).st_size
    data = os.pread(file, size, 0)
    whole = _whole_length(data)
    if data[whole:].strip():
        _write_aside(path, data[whole:])
    if whole < size:
        os.ftruncate(file, whole)


def _write_aside(path: Path, tail: bytes) -> None:
    n = 1
    while True:
        try:
            aside = os.open(f"{path}.torn-{n}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            break
        except FileExistsError:
            n += 1
    try:
        _write_whole(aside, tail)
    finally:
        os.close(aside)


def _write_whole(file: int, data: bytes) -> None:
    """One write, synced; a short one (disk full) is taken back and raised as `OSError`."""
    before = os.fstat(file).st_size
    written = os.write(file, data)
    if written != len(data):
        os.ftruncate(file, before)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(file)


def _sync_folder(folder: Path) -> None:
    """Make a new file's name durable too."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _whole_length(data: bytes) -> int:
    """Bytes up to and including the last end mark that stands on a line of its own."""
    at = (b"\n" + data).rfind(b"\n" + _END)
    return 0 if at < 0 else at + len(_END)


def _redacted(entry: LogEntry) -> LogEntry:
    changes: dict[str, Any] = {"environment": redact.environment(entry.environment), "reasons": tuple(map(redact.text, entry.reasons))}
    for field in dataclasses.fields(entry):
        value = getattr(entry, field.name)
        if isinstance(value, str):
            changes[field.name] = redact.text(value)
    return dataclasses.replace(entry, **changes)


def _lean(value: Any) -> Any:
    """Plain data without the fields that are empty and whose default says so too; reading restores them."""
    if isinstance(value, dict):
        return {key: _lean(item) for key, item in value.items()}
    if not dataclasses.is_dataclass(value):
        return schema.to_plain(value)
    plain = {field.name: _lean(getattr(value, field.name)) for field in dataclasses.fields(value) if not _left_out(field, value)}
    name = getattr(type(value), "SCHEMA", None)
    return {"schema": name, **plain} if name else plain


def _left_out(field: dataclasses.Field[Any], owner: Any) -> bool:
    has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    value = getattr(owner, field.name)
    return has_default and (value is None or value in ("", (), {}))
