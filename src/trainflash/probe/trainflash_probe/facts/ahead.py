"""Where the time before the training goes: the owner's lines from the import of torch to the first event, and what is importing.

A thread looks at the main thread's frame now and then. It interrupts nothing: a signal, as the line sampler sends it to a training thread,
ends a sleep or a connection that is being made, and ranks that look for each other give up then and try again. A C call that keeps the
interpreter lock is seen right after it, at its line, and counts for all the time since the look before. No such thread is there while the
program forks. Time in an import belongs to no line: it is told apart.
"""

from __future__ import annotations

import _thread
import os
import threading
import time

from .. import frames, own
from ..environment import number
from ..guard import swallow
from ..writer import fact, is_open

MOST_LINES = 400
KEPT = 20
MOST_WAIT_S = 1.0  # for the thread to end, where the interpreter is busy

_rows: dict = {}  # (code, line) -> ns
_importing_ns = 0
_elsewhere_ns = 0  # no line of the owner's, or one too many
_over = False
_watch = None


def begin() -> None:
    """Watch the main thread until there is a file of events; does nothing where another thread imports torch."""
    hertz = number("TRAINFLASH_SAMPLE_HZ", 50.0)
    if hertz <= 0 or threading.current_thread() is not threading.main_thread():
        return
    _start(1 / min(hertz, 1000.0))
    os.register_at_fork(before=_pause, after_in_parent=lambda: _start(1 / min(hertz, 1000.0)))


def _start(every_s: float) -> None:
    global _watch
    if not _over:
        _watch = _Watch(threading.get_ident(), every_s)


def _pause() -> None:
    global _watch
    watch, _watch = _watch, None
    if watch is not None:
        watch.end()


class _Watch:
    """A thread that `threading` does not list: programs count theirs."""

    def __init__(self, ident: int, every_s: float) -> None:
        self._ident, self._every_s = ident, every_s
        self._go, self._done = _thread.allocate_lock(), _thread.allocate_lock()
        self._go.acquire()
        self._done.acquire()
        _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        newest = time.monotonic_ns()
        try:
            while not self._go.acquire(timeout=self._every_s) and not is_open():
                before, newest = newest, time.monotonic_ns()
                _note(frames.of_threads().get(self._ident), newest - before)
        except Exception as error:
            swallow("lines ahead of the training", error)
        finally:
            self._done.release()

    def end(self) -> None:
        """Nothing is noted any more when this returns."""
        self._go.release()
        self._done.acquire(timeout=MOST_WAIT_S)


def _note(frame, ns: int) -> None:
    """One look, which counts for the `ns` since the one before."""
    global _importing_ns, _elsewhere_ns
    while frame is not None and not own.is_own(frame.f_code):
        if own.imports(frame.f_code):
            _importing_ns += ns
            return
        frame = frame.f_back
    key = None if frame is None else (frame.f_code, own.line_of(frame))
    if key is None or (key not in _rows and len(_rows) >= MOST_LINES):
        _elsewhere_ns += ns
    else:
        _rows[key] = _rows.get(key, 0) + ns


def tell() -> None:
    """Write it once, when the training has begun."""
    global _over
    if _over:
        return
    _over = True
    _pause()
    if _rows or _importing_ns or _elsewhere_ns:
        costliest = sorted(_rows, key=_rows.get, reverse=True)[:KEPT]
        rows = [[own.path_of(code), line, own.name_of(code), _rows[(code, line)]] for code, line in costliest]
        fact("ahead", rows=rows, own_ns=sum(_rows.values()), importing_ns=_importing_ns, elsewhere_ns=_elsewhere_ns)
        _rows.clear()


def after_fork() -> None:
    """What the parent did ahead of its training is not the child's."""
    global _over
    _over = True
    _rows.clear()
