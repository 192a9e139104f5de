"""Where the owner's code opens files for writing: code of the same class between the phases keeps a log, whatever it is called."""

from __future__ import annotations

import builtins
import functools
import io
import sys

from .. import own
from ..guard import swallow
from ..writer import fact

MAX_PLACES = 50
_TELL_AGAIN = (2, 20)  # times that a place has opened a file: once is a log kept open, often is one opened for each line

_opened: dict = {}  # the owner's place -> times


def install() -> None:
    """Wrap `open`, under both names; everything that it returns is as ever."""
    original = builtins.open

    @functools.wraps(original)
    def open(file, mode="r", *args, **kwargs):
        if mode != "r" and mode != "rb":
            _note(mode)
        return original(file, mode, *args, **kwargs)

    builtins.open = io.open = open


def _note(mode: object) -> None:
    try:
        frame = own.own_frame(sys._getframe(2))
        if frame is None or not isinstance(mode, str) or not set(mode) & set("wax+"):
            return
        place = tuple(own.place_of_frame(frame))
        times = _opened[place] = _opened.get(place, 0) + 1
        if times in _TELL_AGAIN or (times == 1 and len(_opened) <= MAX_PLACES):
            fact("written", at=list(place), times=times)
    except Exception as error:
        swallow("open", error)
