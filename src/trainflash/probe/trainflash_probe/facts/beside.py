"""Python threads beside the training one, and how long training stands still while it computes.

A thread that runs Python holds the interpreter's lock, and the training thread waits for that at each operator that let go of it: every
phase gets slower alike. What can be seen of it: another thread's CPU time, its line of the owner's code, and the time between a forward and
the update behind it in which the training thread was neither on a core nor runnable. Nothing is asked where no other thread is busy.
"""

from __future__ import annotations

import os
import threading
import time

from .. import frames, own
from ..phases import feeding
from ..phases.loop import loop
from ..phases.observer import Observer
from ..runqueue import of_thread, waited_ns
from ..writer import fact

BUSY = 0.05  # part of a core from which on a thread is looked at
MOST = 8  # threads looked at
MOST_PLACES = 200  # of one thread
ONE_IN = 4  # steps that are timed: asking a thread for its own CPU time lets the kernel take the core away
_SHOWN = 5

_watched: dict = {}  # native id of a busy thread -> (its ident, {place in its code: samples})


def look() -> None:
    """Note where each busy thread is; called by the sampler, with the interpreter's lock held."""
    if not _watched:
        return
    stacks = frames.of_threads()
    for ident, places in list(_watched.values()):
        frame = stacks.get(ident)
        frame = None if frame is None or frame.f_code.co_filename.endswith(feeding.IDLE) else own.own_frame(frame)
        if frame is not None:
            place = (frame.f_code, own.line_of(frame))
            if place in places or len(places) < MOST_PLACES:
                places[place] = places.get(place, 0) + 1
    stacks.clear()  # it holds this frame too, and with it all that training holds


class Beside(Observer):
    """Reads the CPU time of all Python threads now and then; times the training thread's work once one of the others is busy."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._newest: dict = {}  # native id of a thread -> its CPU time when it was read last
        self._rows: dict = {}  # native id of a busy thread -> what is told of it: CPU time while all busy threads lived
        self._read = None  # wall, the process's CPU and the training thread's at the newest reading
        self._lived = [0, 0, 0]  # the same, in all, while all busy threads lived
        self._begun = None  # wall, CPU and run queue when the work that is timed began
        self._work = [0, 0, 0]
        self._turn = 0
        self._listens = True  # whoever adds an observer lets it listen

    def _listen(self, wanted: bool) -> None:
        """The training's work is timed only beside a busy thread."""
        if wanted == self._listens:
            return
        self._listens = wanted
        loop.remove(self.on_forward, self.on_batch, self.on_update)
        if wanted:
            loop.on_forward.append(self.on_forward)
            loop.on_batch.append(self.on_batch)
            loop.on_update.append(self.on_update)

    def on_forward(self, module: object, args: tuple, kwargs: dict) -> None:
        """The first forward behind a batch or an update."""
        if self._begun is None:
            self._begun = () if self._turn % ONE_IN else _now()
            self._turn += 1

    def on_batch(self, loader_id: int, batch: object, role: str) -> None:
        """Waiting for a batch is no work: what had begun before is left out."""
        self._begun = None

    def on_eval(self, begin: bool) -> None:
        """An evaluation neither."""
        self._begun = None

    def on_update(self, optimizer: object) -> None:
        """The work is done."""
        if self._begun:
            _add(self._work, _now(), self._begun)
        self._begun = None

    def on_interval(self, step: int) -> None:
        """The figures so far, and which threads are busy now."""
        self._look()

    def on_exit(self) -> None:
        """The last figures."""
        self._look()

    def _look(self) -> None:
        if self._pid != os.getpid():  # a child that trains: its parent's threads are not there
            self._reset()
        now = time.monotonic_ns(), time.process_time_ns(), of_thread(threading.get_native_id())[0] or 0
        before, self._read, known = self._read, now, self._newest
        self._newest = {}
        for thread in threading.enumerate():
            used = None if thread.ident in (None, loop.tid) else of_thread(thread.native_id)[0]
            if used is not None:
                self._newest[thread.native_id] = used
                if before is not None and used - known.get(thread.native_id, used) >= BUSY * (now[0] - before[0]):
                    self._watch(thread)
        self._listen(bool(_watched))
        if before is None or not _watched:
            return
        ended = [native for native in _watched if native not in self._newest]
        if not ended and all([native in known for native in _watched]):
            _add(self._lived, now, before)
            for native in _watched:
                self._rows[native]["cpu_ns"] += self._newest[native] - known[native]
        for native, (ident, places) in _watched.items():
            hot = sorted(places.items(), key=lambda each: -each[1])[:_SHOWN]
            at = [[own.path_of(code), line, own.name_of(code), times] for (code, line), times in hot]
            self._rows[native].update(at=at, makes=ident in feeding.putters)
        for native in ended:  # what it used at the end is not told any more
            del _watched[native]
        fact("beside", threads=list(self._rows.values()), lived=self._lived, work=self._work)

    def _watch(self, thread) -> None:
        if len(self._rows) < MOST and thread.native_id not in self._rows:
            _watched[thread.native_id] = (thread.ident, {})
            self._rows[thread.native_id] = {"name": thread.name, "cpu_ns": 0, "at": [], "makes": False}


def _add(sums: list, now: tuple, before: tuple) -> None:
    sums[:] = [each + after - earlier for each, after, earlier in zip(sums, now, before)]


def _now() -> tuple:
    """Wall time, CPU time and time in the run queue of this thread, in ns."""
    return time.monotonic_ns(), time.thread_time_ns(), waited_ns() or 0


def after_fork() -> None:
    """Threads do not live on in a child."""
    _watched.clear()
