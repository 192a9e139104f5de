"""Where the owner's code writes, and what: numbers and words of a log, or the state of training.

Code between the phases that writes keeps a log or saves a checkpoint, whatever it is called and whichever library it writes with. What
is written tells which of the two: values that look like the parameters, or a binary file of about their size, are state. Files that
the program opens, databases, serializers, requests to a server, and log calls at a level that is off are noted by the owner's line; what
they write is as ever.
"""

from __future__ import annotations

import builtins
import functools
import io
import logging
import os
import sys
import weakref

from .. import imports, own
from ..guard import swallow
from ..objects import is_array, is_tensor
from ..patches import like
from ..phases import checkpoints
from ..phases.loop import loop
from ..phases.observer import Observer
from ..writer import fact
from .saved_state import adds_up_to_state, backward_begins, file_holds_state, holds_state

MAX_PLACES = 50
MAX_FILES = 16  # files whose size is still to be looked at
OFTEN = 3  # times that a place has written while training: before, or once, is a log kept open; often, one opened for each line
_ENDINGS = ".png .jpg .jpeg .svg .pdf .gif .csv .tsv .txt .log .json .jsonl .html .md .xlsx .parquet"
_NO_STATE = tuple(_ENDINGS.split())
_CHANGES = frozenset((9, 18, 22, 23))  # what SQLite asks leave for: DELETE, INSERT, a transaction, UPDATE
_MAX_SITES = 10_000
PARTS = 64  # calls of a place of which each array is looked at: it may write the state one by one
MANY, REST = 1024, 16  # times of a place, from which on so many calls after each look are let through: looking costs up to a microsecond

_sites: dict = {}  # (id of code, instruction) -> (the owner's place, its times, the code: alive, so that the id stays its own)
_times: dict = {}  # the owner's place -> [times while training]
_state: set = set()  # places that were seen to write the state of training
_resting = 0  # calls that are still let through
_files: dict = {}  # path of a binary file -> the place that opened it
_ahead: list = []  # (place, weak reference to the file that it opened) before the training


def install() -> None:
    """Wrap what writes, the libraries when the program imports them; everything that they return is as ever."""
    if not getattr(sys.flags, "warn_default_encoding", False):  # a built-in's warning names the newest line of Python: ours
        builtins.open = io.open = _opening(builtins.open)
    _wrap(os, "fsync", None)
    checkpoints.moved.append(_renamed)
    logging.Logger.isEnabledFor = _asking(logging.Logger.isEnabledFor)
    imports.after("sqlite3", _database)
    for name, functions in _WRITERS.items():
        imports.after(name, lambda module, functions=functions: _wrap_all(module, functions))
    imports.after("http.client", lambda module: _wrap(module.HTTPConnection, "request", None))
    imports.after("matplotlib.figure", lambda module: _wrap(module.Figure, "savefig", None))
    loop.add(_Sizes())


_WRITERS = {  # module -> its functions, with the argument that holds what is written
    "pickle": (("dump", 0), ("dumps", 0)),
    "joblib": (("dump", 0),),
    "cloudpickle": (("dump", 0), ("dumps", 0)),
    "dill": (("dump", 0), ("dumps", 0)),
    "numpy": (("save", 1), ("savez", slice(1, None)), ("savez_compressed", slice(1, None)), ("savetxt", 1)),
    "safetensors.numpy": (("save_file", 0), ("save", 0)),
    "json": (("dump", None), ("dumps", None)),
}


def _wrap_all(module, functions: tuple) -> None:
    for name, what in functions:
        _wrap(module, name, what)


def _wrap(owner: object, name: str, what) -> None:
    original = getattr(owner, name, None)
    if callable(original):
        imports.exchange(owner, name, _noting(original, what))


def _noting(original, what):
    """`original`, its caller noted; `what` is the place of the argument that is written, None: it holds no state."""

    @like(original)
    def write(*args, **kwargs):
        global _resting
        if _resting:
            _resting -= 1
        elif loop.steps and not loop.in_data:
            _note(what, args, kwargs)
        return original(*args, **kwargs)

    return write


def _asking(original):
    """A log call of the owner's whose message nobody is shown: it was put together all the same."""

    names = vars(logging)

    @functools.wraps(original)
    def isEnabledFor(self, level):
        global _resting
        heard = original(self, level)
        if not heard and _resting:
            _resting -= 1
        elif not heard and loop.steps and not loop.in_data:
            try:
                caller = sys._getframe(1)
                if caller.f_globals is names and caller.f_back is not None and own.is_own(caller.f_back.f_code):
                    _note(unheard=True)
            except Exception as error:
                swallow("unheard", error)
        return heard

    return isEnabledFor


def _opening(original):
    @like(original)
    def open(*args, **kwargs):
        place = None
        if len(args) > 1 or kwargs:
            mode = args[1] if len(args) > 1 else kwargs.get("mode")
            if type(mode) is str and mode != "r" and mode != "rb":
                place = _opened(args[0] if args else kwargs.get("file"), mode)
        file = original(*args, **kwargs)
        if place is not None and not loop.steps and len(_ahead) < MAX_FILES:
            _ahead.append((place, weakref.ref(file)))
        return file

    return open


def _renamed(source: object, target: object) -> None:
    place = _files.pop(_absolute(source), None) if _files else None
    if place is not None:
        _files[_absolute(target)] = place


def _database(module) -> None:
    """A connection asks leave for what a statement does, once when it is prepared, and for each transaction; it gets it.

    Statements themselves are not looked at: SQLite would write them out with all that is put into them, images too.
    """

    def wrapped(original):
        @like(original)
        def connect(*args, **kwargs):
            connection = original(*args, **kwargs)
            try:
                module.Connection.set_authorizer(connection, _allowed)
            except Exception as error:
                swallow("sqlite3", error)
            return connection

        return connect

    connect = wrapped(module.connect)
    for each in (module, sys.modules.get("sqlite3.dbapi2")):
        if each is not None:
            imports.exchange(each, "connect", connect)


def _allowed(action: int, name, *more) -> int:
    if action in _CHANGES and loop.steps and not loop.in_data and not (name or "").startswith("sqlite_"):
        _note()
    return 0


def _opened(file: object, mode: str):
    """The place that opens a file to write; None where that is nobody's, or none."""
    try:
        if not set(mode) & set("wax+"):
            return None
        place = _note()
        if place is None or "b" not in mode or not isinstance(file, (str, bytes, os.PathLike)):
            return place
        path = _absolute(file)
        _look_at_sizes(place)
        if len(_files) < MAX_FILES and not path.lower().removesuffix(".tmp").endswith(_NO_STATE):
            _files[path] = place
        return place
    except Exception as error:
        swallow("open", error)
        return None


def _tell_closed() -> None:
    """Files that were opened before the training and are closed in the middle of it: no log is kept there."""
    files = [(place, reference()) for place, reference in _ahead]
    kept = {place for place, file in files if file is not None and not file.closed}
    for place in {place for place, _ in files} - kept:
        fact("closed", at=list(place))
    _ahead.clear()


def _absolute(path: object) -> str:
    return os.path.abspath(os.fsdecode(path))


def _look_at_sizes(place=None) -> None:
    """Files that the place opened, all without one, are written by now."""
    for path, at in list(_files.items()):
        if place is None or at == place:
            del _files[path]
            if at not in _state and file_holds_state(path):
                _tell(at, True)


def _note(what=None, args: tuple = (), kwargs=None, unheard: bool = False):
    """The owner's line that led here writes; `what`: where among the arguments. Gives the place; None without one.

    Once a place is known this is a count; what is written there is looked at at its 4th, 8th, 16th time, and so on, arrays each of the
    first times.
    """
    global _resting
    try:
        if loop.in_log or loop.in_ckpt:
            return None
        frame = sys._getframe(2)
        site = _sites.get((id(frame.f_code), frame.f_lasti)) or _site(own.own_frame(frame, own.imports))
        if site is None:
            return None
        place, counted, _ = site
        known = counted[0] >= 0
        times = counted[0] = max(counted[0], 0) + bool(loop.steps)
        if times > MANY:
            _resting = REST
        asked, looks = what is not None and place not in _state, times <= OFTEN or not times & (times - 1)
        if not looks and (times > PARTS or not asked):
            return place
        given = args[what if type(what) is slice else slice(what, what + 1)] if asked else ()
        parts = [each for each in given if is_tensor(each) or is_array(each)]
        if not looks and not parts:
            return place
        state = asked and ((looks and holds_state([given, kwargs])) or (bool(parts) and adds_up_to_state(place, parts)))
        if state or times == OFTEN or (not known and len(_times) <= MAX_PLACES):
            _tell(place, state, unheard)
        return place
    except Exception as error:
        swallow("written", error)
        return None


def _site(frame):
    if frame is None:
        return None
    key = (id(frame.f_code), frame.f_lasti)
    if key in _sites:
        return _sites[key]
    place = tuple(own.place_of_frame(frame))
    site = (place, _times.setdefault(place, [-1]), frame.f_code)
    if len(_sites) < _MAX_SITES:
        _sites[key] = site
    return site


def _tell(place: tuple, state: bool, unheard: bool = False) -> None:
    if state:
        _state.add(place)
    fact("written", at=list(place), times=max(_times.get(place, [0])[0], 0), state=place in _state, unheard=unheard)


class _Sizes(Observer):
    """Looks at the newest files, and once at what is trained."""

    def on_backward(self, tensors: tuple, grad_tensors: object) -> None:
        """The first one says it, where no module does."""
        if backward_begins(tensors):
            loop.remove(self.on_backward)

    def on_interval(self, step: int) -> None:
        """Those that were opened before this step are complete, or will be looked at when they are opened again."""
        _look_at_sizes()
        if _ahead:
            _tell_closed()

    def on_exit(self) -> None:
        """The last ones."""
        _look_at_sizes()
