"""Traces the owner's function calls inside a few short windows: what was called with which arguments, and gave what.

Outside windows nothing is traced. A window is not opened while a debugger or a coverage tool traces.
"""

from __future__ import annotations

import os
import time
import weakref

from .. import own, tracing
from ..guard import swallow
from ..nested import tensors_in
from ..objects import held_in, is_array, is_tensor
from ..phases import unseen
from ..phases.loop import loop
from ..writer import fact
from .digests import of_arguments, of_result

MAX_CALLS = 1500  # in one window
MAX_CALLS_OF_ONE = 200  # of one function in one window: a small one called for each byte must not hide those around it
MAX_ROWS = 20000  # in one process
MAX_HELD = 2000  # calls whose tensors are remembered
FEW_OBJECTS = 2  # own: more objects than that, known by identity alone, come and go: a cache would keep each of them alive, for nothing
MAX_OVERHEAD_NS = 500_000_000  # our own work in one window: digests of large arguments must not hold a step up for long

FUNCTIONS = os.path.join("torch", "autograd", "function.py")  # calls the forward of an autograd function
MODES = ("__torch_dispatch__", "__torch_function__")

_GENERATOR = 0x20 | 0x80 | 0x200
_VARARGS, _VARKEYWORDS = 0x04, 0x08

_functions: dict = {}  # code, or (place, operator) -> id
_tensors: dict = {}  # (function, digest of the arguments) -> weak references to the tensors among them
_objects: dict = {}  # function -> identities of objects that it was given
_rows_written = 0


def _nothing() -> None:
    return None


class Returned:
    """A call that returned inside the window; `value` is dropped when the window is closed. `before` and `after` are the window's state."""

    __slots__ = ("after", "before", "code", "depth", "namespace", "ns", "value")

    def __init__(self, entry: dict, value: object, ns: int, after: object) -> None:
        self.code, self.depth, self.namespace, self.value, self.ns = entry["code"], entry["depth"], entry["namespace"], value, ns
        self.before, self.after = entry["state"], after


class Window:
    """One traced stretch of the current thread; `where` is "fetch", "collate", "gap" or "forward". With `keep`, results stay until `close`.

    `state` is asked when a call begins and when it returns. `about` is written with the rows.
    """

    def __init__(self, where: str, keep: bool = False, state=None, **about) -> None:
        self._where = where
        self._state = state or _nothing
        self._about = about
        self._calls_of: dict = {}
        self._rows: list = []
        self._stack: list = []
        self._overhead = 0  # our own time, and pauses
        self._paused = self._paused_ns = 0
        self._began = 0
        self._calls = 0
        self._keep = keep
        self._function = None  # frame of an autograd function's forward, or of a mode: what it gives is torch's, whatever it looks like
        self.returned: list = []
        self.ns = 0  # traced length, without our own time; known when the window is closed
        self.open = False
        self._process = os.getpid()
        self._others = False  # other threads of the owner's run: see `tracing`
        self._tracer = self._call  # one object, by which it is known again

    def begin(self) -> bool:
        """Start to trace; False when somebody else traces."""
        if _rows_written > MAX_ROWS:
            return False
        self._others = tracing.others_work()
        self.open = tracing.begin(self._tracer)
        self._began = time.perf_counter_ns()
        return self.open

    def pause(self) -> None:
        """Do not trace for a while; the time does not count."""
        if self.open and not self._paused:
            tracing.end(self._tracer)
            self._paused = time.perf_counter_ns()

    def resume(self) -> None:
        """Trace again."""
        if self.open and self._paused and self._process == os.getpid():
            now = time.perf_counter_ns()
            self._overhead += now - self._paused
            self._paused_ns += now - self._paused
            self._paused = 0
            tracing.begin(self._tracer)

    def end(self) -> None:
        """Stop to trace, and write the rows; a forked child has none."""
        global _rows_written
        if not self.open:
            return
        self.resume()
        self._stop()
        if self._process != os.getpid():
            self._rows = []
            return
        self.ns = max(0, time.perf_counter_ns() - self._began - self._overhead)
        _rows_written += len(self._rows)
        if not self._rows and self._where == "gap":
            return
        fact("calls", where=self._where, window_ns=self.ns, rows=self._rows, **self._about)
        self._rows = []

    def _stop(self) -> None:
        tracing.end(self._tracer)
        self.open = False
        for entry in self._stack:
            tracing.leave(entry["frame"], entry["tracer"])
            entry["frame"] = None
        self._stack.clear()

    def _give_up(self) -> None:
        """Without a trace of what was seen so far: a part of a window says nothing."""
        self._stop()
        self._rows, self.returned = [], []

    def _call(self, frame, event, argument):
        if not self.open:
            tracing.end(self._tracer)  # somebody has put it back who had found it
            return None
        if event != "call" or self._calls >= MAX_CALLS or self._overhead > self._paused_ns + MAX_OVERHEAD_NS:
            return None
        code = frame.f_code
        if self._others and (code.co_cellvars or code.co_freevars):
            return None
        if tracing.asks(code) and own.is_own(code):
            self._give_up()
            return None
        if not own.is_own(code) or code.co_name in ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>", "<module>"):
            return None
        calls_of_it = self._calls_of.get(code, 0)
        if calls_of_it >= MAX_CALLS_OF_ONE:
            return None
        if self._function is not None or unseen.recorded():
            return None
        if code.co_name in MODES or (frame.f_back is not None and frame.f_back.f_code.co_filename.endswith(FUNCTIONS)):
            self._function = frame
            frame.f_trace_lines = False
            return self._function_local
        began = time.perf_counter_ns()
        self._calls_of[code] = calls_of_it + 1
        self._calls += 1
        entry = None
        try:
            frame.f_trace_lines = False
            with loop.unseen():
                entry = self._entry(frame, code)
            self._stack.append(entry)
        except Exception as error:
            swallow("tracer", error)
        now = time.perf_counter_ns()
        self._overhead += now - began
        if entry is None:
            return None
        entry["began"], entry["overhead"] = now, self._overhead
        entry["frame"], entry["tracer"] = frame, lambda frame, event, argument: self._local(entry, event, argument)
        return entry["tracer"]

    def _function_local(self, frame, event, argument):
        if event == "return":
            self._function = None
        return self._function_local

    def _entry(self, frame, code) -> dict:
        given = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & _VARARGS) + bool(code.co_flags & _VARKEYWORDS)
        names = code.co_varnames[:given]
        values = [frame.f_locals.get(name) for name in names]
        compared = not code.co_flags & _GENERATOR
        digest, hashable, tensors, containers = of_arguments(values) if compared else (None, False, [], False)
        is_method = bool(names) and names[0] in ("self", "cls")
        return {
            "code": code,
            "arguments": digest,
            "hashable": hashable and _few_objects(code, values[is_method:]),
            "containers": containers,
            "tensors": [weakref.ref(tensor) for tensor in tensors],
            "is_method": is_method,
            "caller": self._stack[-1]["code"] if self._stack else None,
            "depth": len(self._stack),
            "namespace": frame.f_globals,
            "state": self._state(),
        }

    def _local(self, entry: dict, event: str, result: object) -> None:
        if event != "return":
            return
        now = time.perf_counter_ns()
        try:
            at = next((at for at, each in enumerate(self._stack) if each is entry), None)
            if at is not None:
                del self._stack[at:]
            entry["frame"] = None  # which holds the tracer, which holds the entry
            ns = now - entry["began"] - (self._overhead - entry["overhead"])
            with loop.unseen():
                if self._keep:
                    self.returned.append(Returned(entry, result if _may_be_data(result) else None, ns, self._state()))
                if entry["arguments"] is not None and self.open:
                    self._note(entry, ns, result)
        except Exception as error:
            swallow("tracer", error)
        self._overhead += time.perf_counter_ns() - now

    def _note(self, entry: dict, ns: int, result: object) -> None:
        if any(tensor.requires_grad for tensor in tensors_in(result)):
            return  # it belongs to this step's graph
        digest, size = of_result(result)
        if digest is None:
            return
        place = _function(entry["code"])
        caller = -1 if entry["caller"] is None else _function(entry["caller"])
        hashable = entry["hashable"] and _same_tensors((place, entry["arguments"]), entry["tensors"])
        self._rows.append(
            [place, entry["arguments"], digest, max(0, ns), caller, self._where, hashable, entry["is_method"], size, entry["containers"]]
        )


def _may_be_data(result: object) -> bool:
    """Anything else is not kept: an object that nobody holds any more is closed, or told to its weak references, at once."""
    return is_tensor(result) or is_array(result) or held_in(result) is not None


def _few_objects(code, values: list) -> bool:
    """Whether the same few objects, of those that are keys by their identity, come again and again."""
    held = {id(value) for value in values if value is not None and type(value).__hash__ is object.__hash__}
    if not held:
        return True
    known = _objects.setdefault(code, set())
    known |= held
    return len(known) <= FEW_OBJECTS


def _same_tensors(key: tuple, tensors: list) -> bool:
    """Whether the tensors of a call are the very ones of the last call with equal arguments: a cache knows tensors by identity.

    They may be for the first such call; not where too many calls are remembered already to tell.
    """
    if not tensors:
        return True
    known = _tensors.get(key)
    if known is None:
        if len(_tensors) < MAX_HELD:
            _tensors[key] = tensors
        return key in _tensors
    return all(a() is not None and a() is b() for a, b in zip(known, tensors))


def _function(code) -> int:
    number = _functions.get(code)
    if number is None:
        number = _functions[code] = len(_functions)
        fact("function", id=number, at=own.place_of_code(code))
    return number


def function_number(place: list, operator: str) -> int:
    """The number of what is called at a line of the owner's, in rows of calls."""
    key = (*place, operator)
    number = _functions.get(key)
    if number is None:
        number = _functions[key] = len(_functions)
        fact("function", id=number, at=list(place), operator=operator)
    return number


def after_fork() -> None:
    """A forked child writes its own table of functions."""
    global _rows_written
    _functions.clear()
    _objects.clear()
    _tensors.clear()
    _rows_written = 0
