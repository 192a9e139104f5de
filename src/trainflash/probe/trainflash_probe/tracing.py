"""The trace function of one thread, taken and given back: never while somebody else traces, and never taken from somebody who began since.

A process that is forked while we trace goes on without: the child is no part of what is looked at. After each call of a trace function
the interpreter (up to 3.12) writes the variables of the frame back, also those of closures, as they were before: what another thread has
made of them meanwhile is lost. So code with such variables is not traced where the owner has threads.
"""

from __future__ import annotations

import sys
import threading
from _thread import get_ident

from . import frames, own

_newest = None  # our function that was set last


def free() -> bool:
    """Whether nobody traces this thread, and no function of the owner's that runs now may ask whether somebody does."""
    frame = sys._getframe(1) if sys.gettrace() is None else None
    while frame is not None and not (asks(frame.f_code) and own.is_own(frame.f_code)):
        frame = frame.f_back
    return sys.gettrace() is None and frame is None


def asks(code) -> bool:
    """Whether a function may ask who traces: programs leave work out while they are debugged. Before it runs, a trace has to end."""
    return "gettrace" in code.co_names


def begin(function) -> bool:
    """Call `function` at each call on this thread from here; False where somebody else traces, or may be asked for."""
    global _newest
    if not free():
        return False
    _newest = function
    sys.settrace(function)
    return True


def others_work() -> bool:
    """Whether another thread runs code of the owner's. The main thread may wait for the one that trains."""
    mine, main = get_ident(), threading.main_thread().ident
    stacks = frames.of_threads()
    del stacks[mine]  # which holds this frame too, and with it all that the program holds
    for ident, frame in stacks.items():
        waits = ident == main and frame.f_code.co_filename == threading.__file__
        if not waits and own.own_frame(frame) is not None:
            return True
    return False


def end(function) -> None:
    """Trace no more, unless somebody else does."""
    if sys.gettrace() is function:
        sys.settrace(None)


def leave(frame, function) -> None:
    """Take our function off a frame that still runs, and let a debugger see its lines."""
    if frame.f_trace is function:
        frame.f_trace = None
        frame.f_trace_lines = True


def after_fork() -> None:
    """In the child, which was forked by the thread that runs now."""
    if _newest is not None:
        end(_newest)
