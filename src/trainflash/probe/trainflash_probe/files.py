"""Files that the probe keeps open.

A program may close all descriptors (`os.closerange`, as daemons and some launchers do) and open files of its own under their numbers. So
ours lie above the numbers that a program comes to by itself, and each is asked which file it is before it is used.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import mmap
import os
import resource
import weakref

HIGH = 600  # the table of descriptors grows with the highest one
SPARE = 64  # below the limit


class Kept:
    """An open file of ours; opened again by its path where somebody has closed it. Raises OSError where that cannot be."""

    def __init__(self, path: str, flags: int, mode: int = 0o644) -> None:
        self._path = os.path.abspath(path)
        self._again = (flags & ~(os.O_CREAT | os.O_EXCL | os.O_TRUNC)) | os.O_CLOEXEC
        self._take(os.open(path, flags | os.O_CLOEXEC, mode))

    def _take(self, fd: int) -> None:
        self._fd = _moved_up(fd)
        self._identity = _identity(self._fd)

    def fileno(self) -> int:
        """The descriptor, which is ours now."""
        if self._fd < 0 or _identity(self._fd) != self._identity:
            self._fd = -1
            self._take(os.open(self._path, self._again))
        return self._fd

    def write(self, data: bytes) -> int:
        """All of it; OSError on a full disk."""
        done = os.write(self.fileno(), data)
        while done < len(data):
            done += os.write(self.fileno(), data[done:])
        return done

    def close(self) -> None:
        """Close it, if it is still ours."""
        fd, self._fd = self._fd, -1
        if fd >= 0 and _identity(fd) == self._identity:
            os.close(fd)


def shared_words(fd: int, offset: int, size: int) -> memoryview:
    """`size` bytes of a file as 8-byte words that are shared with all who map it. Raises OSError.

    `mmap.mmap` would keep a copy of the descriptor, and close what has its number when the map goes.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    address = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, offset)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")
    words = (ctypes.c_uint64 * (size // 8)).from_address(address)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    weakref.finalize(words, libc.munmap, address, size).atexit = False
    return memoryview(words).cast("B").cast("Q")


def _identity(fd: int):
    try:
        found = os.fstat(fd)
        return found.st_dev, found.st_ino
    except OSError:
        return None


def _moved_up(fd: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        above = HIGH if limit == resource.RLIM_INFINITY or limit > HIGH + SPARE else limit - SPARE
        if above > fd:
            high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above)
            os.close(fd)
            return high
    return fd
