"""What a thread waits for, as the kernel says it: its system call and the file, pipe or socket that the call is about."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from trainflash.telemetry.reading import HOST, text

READ, LOCK, POLL, SLEEP, CHILD = "read", "lock", "poll", "sleep", "child"
_X86 = {
    0: READ, 17: READ, 19: READ, 45: READ, 47: READ, 7: POLL, 23: POLL, 270: POLL, 271: POLL, 232: POLL, 281: POLL,
    202: LOCK, 35: SLEEP, 230: SLEEP, 61: CHILD, 247: CHILD,
}  # fmt: skip
_ARM = {
    63: READ,
    65: READ,
    67: READ,
    207: READ,
    212: READ,
    72: POLL,
    73: POLL,
    22: POLL,
    98: LOCK,
    101: SLEEP,
    115: SLEEP,
    260: CHILD,
    95: CHILD,
}
_CALLS = {"x86_64": _X86, "aarch64": _ARM}
_WORDS = {
    LOCK: "a lock, or another thread",
    POLL: "several files, sockets or other processes",
    SLEEP: "time to pass",
    CHILD: "a child process",
}


def waits_for(pid: int, tid: int, root: Path = HOST) -> tuple[str | None, str | None]:
    """The kind of wait and what it is for, in words; (None, None) while it runs, or when it is not ours to see."""
    fields = (text(root / f"proc/{pid}/task/{tid}/syscall") or "").split()
    if len(fields) < 2 or not fields[0].isdigit():
        return None, None
    kind = _CALLS.get(platform.machine(), {}).get(int(fields[0]))
    if kind != READ:
        return kind, _WORDS.get(kind or "")
    descriptor = int(fields[1], 16)
    return READ, _file(pid, descriptor, root)


def is_terminal_input(pid: int, tid: int, root: Path = HOST) -> bool:
    """Whether the thread reads its standard input."""
    fields = (text(root / f"proc/{pid}/task/{tid}/syscall") or "").split()
    return len(fields) >= 2 and waits_for(pid, tid, root)[0] == READ and fields[1] == "0x0"


def _file(pid: int, descriptor: int, root: Path) -> str:
    try:
        target = os.readlink(root / f"proc/{pid}/fd/{descriptor}")
    except OSError:
        return f"file descriptor {descriptor}"
    kind = target.partition(":")[0]
    return f"a {kind}" if kind in ("pipe", "socket") else target
