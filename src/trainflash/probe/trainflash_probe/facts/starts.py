"""Processes and threads that the program starts by itself while it trains, by the owner's line: starting and ending them takes time.

Workers of a DataLoader are left out: what starting them costs is seen at each pass over the data. A pool starts its processes where it gets
its first work and ends them where it is left: both count for the line that made it. Where a pool's processes do not inherit the program's
modules, the first wait for a result is the time in which they import theirs.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from threading import get_ident

from .. import imports, own
from ..guard import swallow
from ..phases.loop import loop
from ..writer import fact

MAX_ROWS = 100
_MADE = "_trainflash_made"
_LOADER = os.path.join("torch", "utils", "data", "")

_clock = time.monotonic_ns


class Starts:
    """[times, ns] of each (place, what was started, place where its pool was made), cumulative. A call inside another one is part of it."""

    def __init__(self) -> None:
        self.rows: dict = {}
        self._inside = False

    def timed(self, original, what: str, counts: bool):
        """A function that starts, or ends (`counts` False), processes or threads."""

        @functools.wraps(original)
        def call(*args, **kwargs):
            if self._inside or not loop.steps or loop.tid != get_ident():
                return original(*args, **kwargs)
            self._inside = True
            began = _clock()
            try:
                return original(*args, **kwargs)
            finally:
                self._inside = False
                self._note(what, counts, _clock() - began, args)

        return call

    def first_wait(self, original):
        """`ApplyResult.wait`, of a pool that has given no result yet and whose processes import what they need."""

        @functools.wraps(original)
        def wait(result, *args, **kwargs):
            pool = getattr(result, "_pool", None)
            known = getattr(pool, "__dict__", {})
            if self._inside or not loop.steps or loop.tid != get_ident() or "_trainflash_waited" in known:
                return original(result, *args, **kwargs)
            known["_trainflash_waited"] = True
            if known.get("_ctx") is None or known["_ctx"].get_start_method() == "fork":
                return original(result, *args, **kwargs)
            began = _clock()
            try:
                return original(result, *args, **kwargs)
            finally:
                self._note("process", False, _clock() - began, (pool,))  # a result lets go of its pool when it is there

        return wait

    def _note(self, what: str, counts: bool, ns: int, args: tuple) -> None:
        """`args` of the call begin with the pool, process or thread."""
        try:
            frame = sys._getframe(2)
            while frame is not None and not own.is_own(frame.f_code):
                if _LOADER in frame.f_code.co_filename:
                    return
                frame = frame.f_back
            place = None if frame is None else tuple(own.place_of_frame(frame))
            known = getattr(args[0], "__dict__", {}) if args else {}
            made = known.setdefault(_MADE, place) if counts else known.get(_MADE, place)
            key = (place, what, made)
            entry = self.rows.get(key)
            if entry is None:
                if len(self.rows) >= MAX_ROWS:
                    return
                entry = self.rows[key] = [0, 0]
            entry[0] += counts
            entry[1] += ns
        except Exception as error:
            swallow("starts", error)

    def write(self) -> None:
        """Cumulative figures; the first ones too, from which on the reader counts."""
        fact("starts", t=_clock(), rows=[[*key, *entry] for key, entry in self.rows.items()])

    def wrap(self, owner: object, name: str, what: str, counts: bool = False) -> None:
        """Time `owner.name`, where there is such a function."""
        original = getattr(owner, name, None)
        if original is not None:
            setattr(owner, name, self.timed(original, what, counts))


def install(torch) -> Starts:
    """Wrap what starts threads now, what starts processes when the program imports it."""
    source = Starts()

    def pools(module) -> None:
        for name in ("__init__", "terminate", "join"):
            source.wrap(module.Pool, name, "process", counts=name == "__init__")
        module.ApplyResult.wait = source.first_wait(module.ApplyResult.wait)

    def executors(module) -> None:
        for name in ("__init__", "_start_executor_manager_thread", "shutdown"):
            source.wrap(module.ProcessPoolExecutor, name, "process", counts=name == "__init__")

    source.wrap(threading.Thread, "start", "thread", counts=True)
    imports.after("multiprocessing.process", lambda module: source.wrap(module.BaseProcess, "start", "process", counts=True))
    imports.after("multiprocessing.pool", pools)
    imports.after("concurrent.futures.process", executors)
    return source
