"""Which of the lines that TRAINFLASH_LINES names this run passes, by a trace function in every thread; the run is compared to nothing.

Each process appends to a file of its own, a line as soon as it knows something, so that a killed process loses nothing: that it traces at
all (`begun`), each function of the named files that is entered (`in`), each span of lines when the first of it runs (`ran`). Code that runs
without a frame that could be traced says nothing by its absence, and is named: functions that Dynamo, TorchScript, Numba or Triton took to
compile (`compiled`). Nor can threads be traced that `threading` did not make: those in which torch computes gradients on a device
(`device`). Where somebody else traces, or begins to, nobody can tell (`unsure`, or no `begun`).
"""

from __future__ import annotations

import atexit
import dis
import functools
import json
import os
import sys
import threading
import types

from .. import own
from ..environment import directory
from ..guard import swallow

# Functions to which code is handed that runs otherwise than by the interpreter, in which file, and the variable that holds it.
_TAKERS = {
    ("torch/_dynamo/symbolic_convert.py", "__init__"): "f_code",
    ("torch/jit/frontend.py", "get_jit_def"): "fn",
    ("numba/core/dispatcher.py", "__init__"): "py_func",
    ("triton/runtime/jit.py", "__init__"): "fn",
}
_DEVICES = ("torch/cuda/__init__.py", "torch/xpu/__init__.py", "torch/mtia/__init__.py")

_settrace = sys.settrace
_wanted: dict = {}  # real path -> the path's name, spans of lines
_watched: dict = {}  # file name of code -> what looks at its calls; None: nothing
_open: set = set()  # (name, span) that did not run yet
_untold: list = []  # lines that could not be written yet


def begin() -> None:
    """Trace from here on, in all threads that begin after this. Nothing where somebody traces already."""
    if sys.gettrace() is not None or not directory:
        return
    root = os.environ.get("TRAINFLASH_OWN", "").split(os.pathsep)[0]
    for name, spans in json.loads(os.environ["TRAINFLASH_LINES"]).items():
        spans = [tuple(span) for span in spans]
        _wanted[os.path.realpath(os.path.join(root, name))] = (name, spans)
        _open.update((name, span) for span in spans)
    os.register_at_fork(after_in_child=_forked)
    atexit.register(_end)
    threading.settrace(_call)
    sys.settrace, threading.settrace = _noticed(sys.settrace), _noticed(threading.settrace)
    _tell(k="begun")
    _settrace(_call)


def _noticed(original):
    """The program traces by itself from now on, or ends all tracing."""

    def settrace(function):
        if function is not _call:
            _tell(k="unsure")
        return original(function)

    return settrace


def _forked() -> None:
    _tell(k="begun")
    if _open and sys.gettrace() is None:
        _settrace(_call)


def _end() -> None:
    """What is called after this, while modules are taken apart, finds nothing of ours any more."""
    if sys.gettrace() is _call:
        _settrace(None)
    if _untold:
        _write()


def _tell(**line) -> None:
    _untold.append(json.dumps(line).encode() + b"\n")
    _write()


def _write() -> None:
    """What cannot be written now, for want of a descriptor, is written with what comes next."""
    try:
        fd = os.open(os.path.join(directory, "ran-%d.jsonl" % os.getpid()), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            while _untold:
                os.write(fd, _untold[0])
                _untold.pop(0)
        finally:
            os.close(fd)
    except Exception as error:
        swallow("lines that ran", error)


def _call(frame, event, argument):
    """The trace function of every thread."""
    code = frame.f_code
    try:
        try:
            watch = _watched[code.co_filename]
        except KeyError:
            watch = _watched[code.co_filename] = _watch(code)
        if watch is not None:
            return watch(frame)
        if not _open:
            _settrace(None)
    except Exception as error:
        _fail(error)
    return None


def _fail(error) -> None:
    swallow("lines that ran", error)
    _tell(k="unsure")


def _watch(code):
    if type(code.co_filename) is not str or code.co_filename.startswith("<"):
        return None
    path = os.path.realpath(own.path_of(code))
    if path in _wanted:
        return _File(*_wanted[path]).enter
    ending = "/".join(path.split(os.sep)[-3:])
    takers = {function: variable for (file, function), variable in _TAKERS.items() if file == ending}
    if takers:
        return functools.partial(_taken, takers)
    return _device if ending in _DEVICES else None


def _device(frame) -> None:
    if frame.f_code.co_name == "_lazy_init":
        _tell(k="device")


def _taken(takers, frame) -> None:
    """Name the code that is handed over, with all that is defined in it."""
    given = frame.f_locals.get(takers.get(frame.f_code.co_name))
    given = getattr(given, "__func__", given)
    code = given if isinstance(given, types.CodeType) else getattr(given, "__code__", None)
    if not isinstance(code, types.CodeType):
        return
    name, _ = _wanted.get(os.path.realpath(own.path_of(code)), ("", ()))
    if name:
        lines = sorted(line for each in _with_inner(code) for line in _lines(each))
        _tell(k="compiled", file=name, lines=[lines[0], lines[-1]])


def _with_inner(code):
    yield code
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _with_inner(each)


def _lines(code) -> set:
    return {line for _, line in dis.findlinestarts(code) if line}


class _File:
    """One of the named files; a call of its functions is traced by line as long as there is something in them that did not run."""

    def __init__(self, name, spans):
        self._name = name
        self._spans: dict = {}  # line -> spans that it is the first sign of
        for span in spans:
            for line in range(span[0], span[1] + 1):
                self._spans.setdefault(line, []).append(span)
        self._codes: dict = {}  # identity of a code -> the code, which stays alive, and its lines

    def enter(self, frame):
        code = frame.f_code
        known = self._codes.get(id(code))
        if known is None:
            known = self._codes[id(code)] = (code, _lines(code))
            _tell(k="in", file=self._name, line=code.co_firstlineno)
        for line in known[1]:
            if line in self._spans:
                return self.line
        return None

    def line(self, frame, event, argument):
        try:
            if event == "line" and frame.f_lineno in self._spans:
                for span in self._spans.pop(frame.f_lineno, ()):
                    if (self._name, span) in _open:
                        _open.discard((self._name, span))
                        _tell(k="ran", file=self._name, lines=span)
        except Exception as error:
            _fail(error)
        return self.line
