"""A directory (or archive) of traces → those that belong together.

Rules, in this order; what they leave out is said in the profile's notes.
1. XPlane protobufs are preferred over JSON, which is derived from them and often capped; both over Perfetto's, and those over what nsys
   exported.
2. Of several recordings (`plugins/profile/<timestamp>/`) the newest one by name.
3. In one recording of JAX `perfetto_trace.json(.gz)` before the `<host>.trace.json(.gz)` of the same time.
4. Of one worker's recordings (`<host>_<pid>.<time>.pt.trace.json`, as torch's handler for TensorBoard names them) the newest one.
5. Of a file that is there plain and packed the plain one.
What remains are the ranks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trainflash.errors import UsageError
from trainflash.profile.events import SIDE_COLUMNS, Profile, Trace
from trainflash.profile.sources.files import read_file

_XPLANE = re.compile(r"\.xplane\.pb(\.gz)?$")
_TRACE = re.compile(r"trace[^/]*\.json(\.gz)?$", re.IGNORECASE)
_PERFETTO = re.compile(r"\.(pftrace|perfetto-trace)(\.gz)?$")
_NSYS = re.compile(r"\.sqlite3?$", re.IGNORECASE)
_JSON = re.compile(r"\.json(\.gz)?$", re.IGNORECASE)
_SESSION = re.compile(r"(^|.*/)plugins/profile/(?P<time>[^/]+)/[^/]+$")
_WORKER = re.compile(r"^(?P<worker>.+?)\.(?P<time>\d{10,})\.pt\.trace\.json(\.gz)?$")
MOST_FILES = 100_000  # entries of a directory that are looked at


@dataclass(frozen=True)
class Chosen:
    """`names` in order; `xplane`: they are protobufs; `notes`: what was left out."""

    names: tuple[str, ...]
    xplane: bool
    notes: tuple[str, ...]


def read(directory: Path, on_file: Callable[[str], None], columns: Collection[str] = SIDE_COLUMNS) -> tuple[Profile, list[Path]]:
    """(the traces of a directory, the XPlane files that they were read from). Raises `UsageError` where there is none."""
    if not directory.is_dir():
        what = "is no directory" if directory.exists() else "does not exist"
        raise UsageError(f"{directory} {what}", "name a directory that a profiler wrote, or a file with --trace-file")
    try:
        files = [path for path, _ in zip(sorted(directory.rglob("*")), range(MOST_FILES), strict=False) if path.is_file()]
    except OSError as fault:
        raise UsageError(f"{directory} cannot be read: {fault.strerror or fault}", "name a directory that you may read") from None
    chosen = choose([path.relative_to(directory).as_posix() for path in files], str(directory))
    traces, notes = [], list(chosen.notes)
    for name in chosen.names:
        on_file(name)
        try:
            traces += read_file(directory / name, name, chosen.xplane, columns)
        except UsageError as fault:
            notes.append(fault.message)
    if not traces:
        raise UsageError(f"{directory} holds no trace that can be read: {notes[-1]}", "name a directory that a profiler wrote")
    xplanes = [directory / name for name in chosen.names] if chosen.xplane else []
    return Profile(by_rank(traces), str(directory), notes=tuple(notes)), xplanes


def choose(names: Sequence[str], where: str) -> Chosen:
    """Which of these files (paths with "/") to read. Raises `UsageError` where none is a trace."""
    xplane = [name for name in names if _XPLANE.search(name)]
    traces = [name for name in names if _TRACE.search(PurePosixPath(name).name)]
    exports = [name for name in names if _NSYS.search(name)]
    protobufs = [name for name in names if _PERFETTO.search(name)]
    found = xplane or traces or protobufs or exports or [name for name in names if _JSON.search(name)]
    if not found:
        raise UsageError(
            f"{where} holds no trace",
            "name a directory with *.xplane.pb, *.trace.json or *.pt.trace.json, plain or .gz, *.pftrace, or nsys' *.sqlite",
        )
    notes = []
    if xplane and traces:
        notes.append(f"{len(traces)} JSON traces left out: XPlane protobufs are there")
    if exports and found is not exports:
        notes.append(f"{len(exports)} SQLite files left out: traces of a profiler inside the program are there")
    found, left = _newest_session(found)
    if left:
        notes.append(f"{len(left)} older recordings left out: {', '.join(left)}")
    kept = _without_packed_twins(found)
    perfetto = {PurePosixPath(name).parent for name in kept if PurePosixPath(name).name.startswith("perfetto_trace.json")}
    kept = [
        name for name in kept if PurePosixPath(name).parent not in perfetto or PurePosixPath(name).name.startswith("perfetto_trace.json")
    ]
    kept = _newest_of_workers(kept)
    if len(kept) < len(found):
        notes.append(f"{len(found) - len(kept)} files left out: another view or an older recording of the same")
    return Chosen(tuple(sorted(kept)), bool(xplane), tuple(notes))


def _newest_session(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """(files of the newest recording and those of none, names of older recordings)."""
    times = {name: found["time"] for name in names if (found := _SESSION.match(name))}
    if len(set(times.values())) < 2:
        return list(names), []
    newest = max(times.values())
    return [name for name in names if times.get(name, newest) == newest], sorted(set(times.values()) - {newest})


def _without_packed_twins(names: Sequence[str]) -> list[str]:
    plain = set(names)
    return [name for name in names if not (name.endswith(".gz") and name[:-3] in plain)]


def _newest_of_workers(names: Sequence[str]) -> list[str]:
    newest: dict[tuple[str, str], tuple[int, str]] = {}
    others = []
    for name in names:
        path = PurePosixPath(name)
        found = _WORKER.match(path.name)
        if not found:
            others.append(name)
            continue
        key = (str(path.parent), found["worker"])
        newest[key] = max(newest.get(key, (0, "")), (int(found["time"]), name))
    return others + [name for _, name in newest.values()]


def by_rank(traces: Iterable[Trace]) -> tuple[Trace, ...]:
    """Ordered by rank, host and name; those whose rank is not known come last."""
    return tuple(
        sorted(traces, key=lambda trace: (trace.identity.rank is None, trace.identity.rank or 0, trace.identity.host or "", trace.file))
    )
