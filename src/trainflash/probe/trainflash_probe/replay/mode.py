"""What all processes of the program do now: collect results, run live or replay. One byte of a shared file says it."""

from __future__ import annotations

import mmap
import os

from ..environment import directory

COLLECT, LIVE, REPLAY = 0, 1, 2

_byte = None


def open_mode() -> None:
    """Map the byte; the first process makes the file."""
    global _byte
    fd = os.open(os.path.join(directory, "replay-mode"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if os.fstat(fd).st_size == 0:
            os.ftruncate(fd, 1)
        _byte = mmap.mmap(fd, 1)
    finally:
        os.close(fd)


def mode() -> int:
    """COLLECT, LIVE or REPLAY."""
    return _byte[0]


def set_mode(new: int) -> None:
    """For all processes, from now on."""
    _byte[0] = new
