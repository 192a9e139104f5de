"""Batches that another thread or process made and handed over: calls of the standard library that wait for them are phase Data.

They are listened to while a gap is traced, on the training thread. Where what a call gave is an input of the model, calls from that line
of the owner's are spans of Data from then on; all other places that wait are left alone. `queue.SimpleQueue` is no Python: unseen.
"""

from __future__ import annotations

import functools
import sys
from threading import get_ident

from .. import imports, own
from ..guard import swallow
from ..objects import attributes_of, place_of_own
from . import feeding
from .brackets import exchange
from .loop import loop
from .spans import data_span

WAITING = (
    ("queue", "Queue", "get"),
    ("multiprocessing.queues", "Queue", "get"),
    ("multiprocessing.queues", "SimpleQueue", "get"),
    ("multiprocessing.connection", "_ConnectionBase", "recv"),
    ("multiprocessing.pool", "IMapIterator", "next"),
    ("multiprocessing.pool", "ApplyResult", "get"),
    ("concurrent.futures._base", "Future", "result"),
)
GIVING = {  # module -> functions of a class that are given work for other processes
    "multiprocessing.pool": ("Pool", ("apply_async", "imap", "imap_unordered", "_map_async")),
    "concurrent.futures.process": ("ProcessPoolExecutor", ("submit",)),
}
WAITS_FOR_LOCKS = ("queue", "multiprocessing.pool", "concurrent.futures._base")  # and for nothing that a signal could disturb
NOTE = "_trainflash_made"  # on what will give the results: the place of the function that makes them


class Handed:
    """A call of `function` at a place of the owner's that gave a batch, or something else. The matching knows it by `code`."""

    __slots__ = ("code", "function", "value")

    def __init__(self, function, place: tuple, value: object) -> None:
        self.function, self.code, self.value = function, place, value


seen: list = []  # calls in the window that is traced
_listens = False
_places: set = set()  # (code, line) of the owner's that wait for batches
_needed: set = set()  # functions that they call
_originals: dict = {}  # function -> its code, while ours stands there


def install() -> None:
    """Note from now on which functions of the owner's pools of processes are given."""
    for module, (owner, names) in GIVING.items():
        imports.after(module, functools.partial(_note_work, owner, names))


def listen() -> None:
    """A gap begins to be traced."""
    global _listens
    _listens = True
    for function in _functions():
        if function not in _originals:
            _originals[function] = function.__code__
            exchange(function, functools.partial(_watched, function))


def stop() -> None:
    """It is over: what nobody waits in for batches is as it was."""
    global _listens
    _listens = False
    for function in [function for function in _originals if function not in _needed]:
        function.__code__ = _originals.pop(function)


def learn(handed: Handed) -> None:
    """What is handed over at this place are batches."""
    _places.add(handed.code)
    _needed.add(handed.function)
    put = getattr(getattr(sys.modules.get("queue"), "Queue", None), "put", None)
    if put is not None and put not in _needed:
        _needed.add(put)
        exchange(put, _noting_thread)


def waits_in(code) -> bool:
    """Whether `code` is known to wait for batches that others hand over: that waiting is bracketed."""
    return any(each is code for each, _ in _places)


def _functions() -> list:
    found = []
    for module, owner, name in WAITING:
        function = vars(getattr(sys.modules.get(module), owner, object)).get(name)
        if type(function) is type(_functions):
            found.append(function)
    return found


def _watched(function, original):
    spanned = data_span(_interrupted(original) if function.__module__ in WAITS_FOR_LOCKS else original)

    def run(*args, **kwargs):
        if loop.tid != get_ident() or loop.in_data or not loop.started or not (_listens or _places):
            return original(*args, **kwargs)
        frame = own.own_frame(sys._getframe(1))
        place = None if frame is None else (frame.f_code, frame.f_lineno)
        if place in _places:
            feeding.waiting = _maker(args[0])
            try:
                return spanned(*args, **kwargs)
            finally:
                feeding.waiting = None
        value = original(*args, **kwargs)
        if _listens and place is not None:
            seen.append(Handed(function, place, value))
        return value

    return run


def _interrupted(original):
    def run(*args, **kwargs):
        interrupt = feeding.interrupt
        if interrupt is None:
            return original(*args, **kwargs)
        interrupt(True)
        try:
            return original(*args, **kwargs)
        finally:
            interrupt(False)

    return run


def _maker(held: object):
    try:
        return attributes_of(held).get(NOTE, ())
    except Exception as error:
        swallow("handed", error)
        return ()


def _noting_thread(original):
    def put(*args, **kwargs):
        if len(feeding.putters) < feeding.MOST_THREADS:
            feeding.putters.add(get_ident())
        return original(*args, **kwargs)

    return put


def _note_work(owner: str, names: tuple, module) -> None:
    for name in names:
        exchange(vars(getattr(module, owner))[name], _noting_work)


def _noting_work(original):
    def give(*args, **kwargs):
        result = original(*args, **kwargs)
        try:
            work = args[1] if len(args) > 1 else kwargs.get("func")
            inside = work.args[:1] if type(work) is functools.partial else ()  # where results come in chunks
            inner = getattr(result, "gi_frame", None)  # of imap in chunks: a generator around what gives them
            held = result if inner is None else inner.f_locals.get(".0")
            place = next((place for place in map(place_of_own, (work, *inside)) if place is not None), None)
            if place is not None and held is not None:
                attributes_of(held)[NOTE] = place
        except Exception as error:
            swallow("work of a pool", error)
        return result

    return give
