"""Which of the owner's functions run at a moment, and which of them still run later. No frame is kept: it would keep its tensors."""

from __future__ import annotations

import sys
from typing import NamedTuple

from .. import own


class Running(NamedTuple):
    """A function of the owner's on the stack; its frame is known by its number."""

    frame: int
    code: object
    place: list  # [file, line, function]


def running() -> list:
    """The owner's functions that run, innermost first."""
    return [Running(id(frame), frame.f_code, own.place_of_frame(frame)) for frame in frames()]


def innermost(then: list) -> tuple:
    """The innermost of the functions that ran `then` and still run, and where it stands now; None and None where all have returned."""
    known = {(each.frame, each.code): each for each in then}
    for frame in frames():
        found = known.get((id(frame), frame.f_code))
        if found is not None:
            return found, own.place_of_frame(frame)
    return None, None


def frames():
    """The owner's frames that led here, innermost first; none may be kept."""
    frame = own.own_frame(sys._getframe())
    while frame is not None:
        yield frame
        frame = own.own_frame(frame.f_back)
