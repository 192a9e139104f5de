"""How long a thread was runnable without a core. For the current one the kernel's file stays open: one `pread` a question."""

from __future__ import annotations

import os
import threading
import time

from .files import Kept

_file = None
_whose = None  # (process, thread) that the open file belongs to; a forked child opens its own


def of_thread(native: object) -> tuple:
    """(ns on a core, ns runnable without one) of a thread of this process; Nones where the kernel does not say."""
    try:
        with open(f"/proc/self/task/{native}/schedstat", encoding="utf-8") as stat:
            fields = stat.read().split()
        return int(fields[0]), int(fields[1])
    except (OSError, ValueError, IndexError):
        return None, None


def waited_ns():
    """Nanoseconds since the thread began; None where the kernel does not say."""
    global _file, _whose
    try:
        whose = (os.getpid(), threading.get_ident())
        if whose != _whose:
            before, _file, _whose = _file, None, whose
            if before is not None:
                before.close()
            _file = Kept(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
        return int(os.pread(_file.fileno(), 64, 0).split(None, 2)[1]) if _file is not None else None
    except (OSError, ValueError, IndexError):
        return None


def clock() -> int:
    """Nanoseconds without those in which this thread waited for a core."""
    return time.perf_counter_ns() - (waited_ns() or 0)
