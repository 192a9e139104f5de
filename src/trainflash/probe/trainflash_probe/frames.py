"""Where the threads of this process are."""

from __future__ import annotations

import gc
import sys

_COLLECTS_INSIDE = sys.version_info < (3, 12)  # later ones collect between bytecodes only
_enabled, _disable, _enable = gc.isenabled, gc.disable, gc.enable


def of_threads() -> dict:
    """Thread ident -> its innermost frame.

    Python holds the lock on its list of threads meanwhile. No garbage collection may begin in there: its callbacks are Python code, and a
    signal whose handler asks the same would wait for that lock for ever.
    """
    collects = _COLLECTS_INSIDE and _enabled()
    if collects:
        _disable()
    try:
        return sys._current_frames()
    finally:
        if collects:
            _enable()
