"""How long the current thread was runnable without a core. The kernel's file stays open: one `pread` a question."""

from __future__ import annotations

import os
import threading

_fd = -1
_whose = None  # (process, thread) that the open file belongs to; a forked child opens its own


def waited_ns():
    """Nanoseconds since the thread began; None where the kernel does not say."""
    global _fd, _whose
    try:
        whose = (os.getpid(), threading.get_ident())
        if whose != _whose:
            if _fd >= 0:
                os.close(_fd)
            _fd, _whose = -1, whose
            _fd = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        return int(os.pread(_fd, 64, 0).split(None, 2)[1]) if _fd >= 0 else None
    except (OSError, ValueError, IndexError):
        return None
