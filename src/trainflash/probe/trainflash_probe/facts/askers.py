"""Whose line asked for something: the owner's where it called torch, nobody's where another library did."""

from __future__ import annotations

import os

from .. import own

_TORCH = f"{os.sep}torch{os.sep}"
_MODULES = f"{_TORCH}nn{os.sep}modules{os.sep}"


def is_of_module(frame) -> bool:
    """Whether one of torch's own modules asks, in its forward: the owner has no say in what it asks for."""
    return _MODULES in frame.f_code.co_filename


def asker(frame):
    """[file, line, function] of the owner's line that called `frame` directly or through torch alone; else None."""
    while frame is not None and not own.is_own(frame.f_code):
        name = frame.f_code.co_filename
        if _TORCH not in name and not name.startswith(own.PROBE):
            return None
        frame = frame.f_back
    return None if frame is None else own.place_of_frame(frame)
