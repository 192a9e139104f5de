"""Whole call stacks, each told once: the owner's frames, those of libraries, torch's.

A stack is a number; its fact names its frames from the outermost to the leaf, and each frame's fact says file, line and function. Where
torch calls a module or its hooks from lines that only their text tells apart, it says the text.
"""

from __future__ import annotations

import linecache
import os

from .. import own
from ..writer import fact

DEEPEST = 160  # frames that are told, from the leaf outwards
FOLDED = 48  # from so many on, a line that stands on the stack already is left out: recursion may go on for thousands
MOST = 20_000  # stacks; what comes after is no stack

_TOLD_BY_TEXT = (os.path.join("torch", "nn", "modules", "module.py"), os.path.join("torch", "optim", "optimizer.py"))

_frames: dict = {}  # (id of a code, instruction) -> number of the frame
_lines: dict = {}  # (id of a code, line) -> the same
_codes: list = []  # kept alive, so that their ids stay theirs
_known: set = set()  # ids of these
_stacks: dict = {}  # numbers of frames, the leaf first -> number of the stack


def number(frame, ends=None) -> int:
    """Number of the stack from `frame` outwards, as far as a code of which `ends` says that it begins there; 0 where there are too many."""
    found = []
    for _ in range(own.DEEPEST):
        if frame is None or len(found) >= DEEPEST:
            break
        code = frame.f_code
        if ends is not None and ends(code):
            break
        if not code.co_filename.startswith(own.PROBE):
            key = id(code), frame.f_lasti
            line = _frames.get(key) or _frame(key, frame)
            if len(found) < FOLDED or line not in found:
                found.append(line)
        frame = frame.f_back
    key = tuple(found)
    stack = _stacks.get(key)
    if stack is None:
        if len(_stacks) >= MOST or not found:
            return 0
        stack = _stacks[key] = len(_stacks) + 1
        fact("stack", id=stack, frames=found[::-1])
    return stack


def _frame(key: tuple, frame) -> int:
    code, line = frame.f_code, own.line_of(frame)
    if key[0] not in _known:
        _known.add(key[0])
        _codes.append(code)
    found = _lines.get((key[0], line))
    if found is None:
        found = _lines[(key[0], line)] = len(_lines) + 1
        text = linecache.getline(code.co_filename, line).strip() if code.co_filename.endswith(_TOLD_BY_TEXT) else ""
        more = {"text": text} if text else {}
        fact("frame", id=found, at=[own.path_of(code), line, own.name_of(code)], own=own.is_own(code), **more)
    _frames[key] = found
    return found


def after_fork() -> None:
    """Stacks are told again in the child's own facts."""
    for kept in (_frames, _lines, _known, _stacks):
        kept.clear()
    _codes.clear()
