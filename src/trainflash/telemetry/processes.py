"""Processes as `/proc` shows them: trees, CPU time, threads, input and output. What is gone or not ours to read is None."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trainflash.telemetry.reading import HOST, number, pairs, text

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Stat:
    """One process or thread. `started` is in clock ticks since boot and tells a process from a later one with the same number."""

    pid: int
    parent: int
    state: str  # R runs, S sleeps, D waits for a device, T is stopped, Z has ended
    name: str
    cpu_s: float
    children_cpu_s: float  # of children that ended and were waited for
    threads: int
    started: int


@dataclass(frozen=True)
class Io:
    """Bytes since the process began, those of children that it has waited for included."""

    read: int  # by read calls, page cache included
    written: int
    device_read: int
    device_written: int


def stat(pid: int, root: Path = HOST) -> Stat | None:
    """The process `pid`; None when there is none."""
    return _stat(root / f"proc/{pid}/stat")


def threads(pid: int, root: Path = HOST) -> tuple[Stat, ...]:
    """The threads of a process; `pid` of each is the thread's number."""
    found = (_stat(path / "stat") for path in _numbered(root / f"proc/{pid}/task"))
    return tuple(thread for thread in found if thread is not None)


def tree(roots: Iterable[int], root: Path = HOST) -> dict[int, Stat]:
    """`roots` and everything below them, zombies too, parents before children."""
    found: dict[int, Stat] = {}
    queue = list(roots)
    while queue:
        pid = queue.pop(0)
        if pid not in found and (seen := stat(pid, root)) is not None:
            found[pid] = seen
            queue += children(pid, root)
    return found


def children(pid: int, root: Path = HOST) -> list[int]:
    """Direct children. Kernels without the list of children are walked process by process."""
    found, told = [], False
    for task in _numbered(root / f"proc/{pid}/task"):
        listed = text(task / "children")
        if listed is not None:
            told = True
            found += [int(word) for word in listed.split() if word.isdigit()]
    if not told:
        stats = (_stat(path / "stat") for path in _numbered(root / "proc"))
        found = [each.pid for each in stats if each is not None and each.parent == pid]
    return sorted(found)


def io(pid: int, root: Path = HOST) -> Io | None:
    """Input and output of a process; None when it is not ours to read."""
    counters = pairs(text(root / f"proc/{pid}/io"))
    try:
        return Io(counters["rchar"], counters["wchar"], counters["read_bytes"], counters["write_bytes"])
    except KeyError:
        return None


def network_bytes(pid: int, root: Path = HOST) -> int | None:
    """Received and sent bytes of all interfaces but loopback, in the network namespace of `pid`."""
    total, seen = 0, False
    for line in (text(root / f"proc/{pid}/net/dev") or "").splitlines():
        name, colon, rest = line.partition(":")
        fields = rest.split()
        if colon and name.strip() != "lo" and len(fields) >= 9:
            received, sent = number(fields[0]), number(fields[8])
            if received is not None and sent is not None:
                total, seen = total + int(received) + int(sent), True
    return total if seen else None


def argv(pid: int, root: Path = HOST) -> tuple[str, ...]:
    """The command line; empty when it cannot be read, and for kernel threads and zombies."""
    try:
        words = (root / f"proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(word.decode("utf-8", "replace") for word in words.rstrip(b"\0").split(b"\0")) if words else ()


def cwd(pid: int, root: Path = HOST) -> str | None:
    """The working directory."""
    return _link(root / f"proc/{pid}/cwd")


def executable(pid: int, root: Path = HOST) -> str | None:
    """The path of the running program."""
    return _link(root / f"proc/{pid}/exe")


def owner(pid: int, root: Path = HOST) -> int | None:
    """The user who owns the process, by number."""
    return pairs(text(root / f"proc/{pid}/status")).get("Uid")


def maps(pid: int, word: str, root: Path = HOST) -> bool | None:
    """Whether a file with `word` in its path is mapped, such as a library; None: not ours to read."""
    mapped = text(root / f"proc/{pid}/maps")
    return None if mapped is None else any(word in line.rpartition(" ")[2] for line in mapped.splitlines())


def _stat(path: Path) -> Stat | None:
    written = text(path)
    try:
        head, _, tail = written.rpartition(")")
        number_of, _, name = head.partition(" (")
        fields = tail.split()
        own, waited = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
        return Stat(
            int(number_of), int(fields[1]), fields[0], name, own / TICKS_PER_S, waited / TICKS_PER_S, int(fields[17]), int(fields[19])
        )
    except (AttributeError, IndexError, ValueError):
        return None


def _numbered(directory: Path) -> list[Path]:
    try:
        return [directory / name for name in os.listdir(directory) if name.isdigit()]
    except OSError:
        return []


def _link(path: Path) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None
