"""Which line really took the time of samples that came late.

A signal that arrives inside an operator (`a @ b`, `memory[index]`) is handled at the next call only, maybe in another line or function.
Where late samples gather, one step (in a worker: one batch) is traced by lines; if another of the owner's lines took the time right
before that place, its late samples belong to that line. Where another thread than the main one trains, the handler waits for the
interpreter, which plain Python hands over at the next operator only or after some milliseconds: then the lines of the function that
ran before that are the truth, however short each of them is.
"""

from __future__ import annotations

import sys
import time

from .. import own, tracing
from ..guard import swallow
from ..phases import gaps
from ..phases.loop import loop
from ..phases.observer import Observer
from ..writer import fact

LATE_NS = 5_000_000  # after the timer's tick
WAITED_NS = 500_000  # the same where the handler waits for the interpreter, which a thread hands over after 5 ms at the latest
GATHER = 3  # late samples at one place before it is looked at
MOST_LOOKS = 8
BEFORE = 8  # so many lines before a place may be what it waited for
MOST_PART = 0.7  # and one of them must have taken so much of their time
MAX_LINES = 50_000

wanted: list = []  # places (code, line) that wait for a look
_late: dict = {}  # place -> late samples
_waited: set = set()  # places whose samples are taken on another thread than the one that trains
_rows: list = []  # (place, when it began) in order
_frames: list = []  # those that ran already when the look began
_found = None  # called with a place and the line that its late samples belong to
_looks = 0
_looking = False


def is_late(ns: int, waited: bool) -> bool:
    """Whether a sample that was taken `ns` after its tick may belong to an earlier line; `waited`: another thread than this one trains."""
    return ns > (WAITED_NS if waited else LATE_NS)


def late(place: tuple, waited: bool, found) -> None:
    """A sample at `place` came late; `found(place, truth)` will be told where it belongs."""
    global _found, _looks
    _found = found
    if waited:
        _waited.add(place)
    _late[place] = _late.get(place, 0) + 1
    if _late[place] == GATHER and _looks < MOST_LOOKS:
        _looks += 1
        wanted.append(place)


def begin() -> None:
    """Trace lines of the owner's on this thread from here, unless somebody else traces."""
    try:
        _begin()
    except Exception as error:
        swallow("closer look", error)


def end() -> None:
    """Stop, and tell which places had waited for another line."""
    try:
        _end()
    except Exception as error:
        swallow("closer look", error)


def _begin() -> None:
    global _looking
    if not tracing.free() or gaps._compiles or tracing.others_work():
        return
    _looking = True
    frame = sys._getframe(2)
    while frame is not None:
        if own.is_own(frame.f_code) and frame.f_trace is None:
            frame.f_trace = _line
            _frames.append(frame)
        frame = frame.f_back
    tracing.begin(_call)


def _stop() -> list:
    """Trace no more; what was seen."""
    global _looking
    _looking = False
    tracing.end(_call)
    for frame in _frames:
        tracing.leave(frame, _line)
    _frames.clear()
    rows = list(_rows)
    _rows.clear()
    return rows


def _end() -> None:
    if not _looking:
        return
    rows, places = _stop(), list(wanted)
    wanted.clear()
    for place in places:
        truth = (_busiest_before if place in _waited else _truth)(rows, place)
        if truth is not None:
            _found(place, truth)


def _call(frame, event, argument):
    if not _looking:
        tracing.end(_call)
    if not _looking or not own.is_own(frame.f_code):
        return None
    if tracing.asks(frame.f_code):
        _stop()
        return None
    _note(frame)
    return _line


def _line(frame, event, argument):
    if event == "line":
        _note(frame)
    elif event == "return":
        _note(own.own_frame(frame.f_back))
    return _line


def _note(frame) -> None:
    line = None if frame is None else (frame.f_code, frame.f_lineno)
    if len(_rows) >= MAX_LINES and _waited:
        _rows[:] = _folded(_rows)
    if len(_rows) < MAX_LINES and not (_rows and _rows[-1][0] == line):
        _rows.append((line, time.perf_counter_ns()))


def _folded(rows: list) -> list:
    """`rows` with each loop's lines once: one after the other, as long as all their turns took, up to the next place that is looked for."""
    folded: list = []
    lengths: dict = {}
    began = rows[0][1]
    for index, (line, at) in enumerate(rows):
        known = next(iter(lengths), line)
        if line in wanted or (line is None) != (known is None) or (line is not None and line[0] is not known[0]):
            began = _lay(folded, lengths, began)
        if line in wanted:
            folded.append((line, at))
            began = rows[index + 1][1] if index + 1 < len(rows) else at
        else:
            lengths[line] = lengths.get(line, 0) + (rows[index + 1][1] - at if index + 1 < len(rows) else 0)
    _lay(folded, lengths, began)
    return folded


def _lay(folded: list, lengths: dict, began: int) -> int:
    for line, ns in lengths.items():
        folded.append((line, began))
        began += ns
    lengths.clear()
    return began


def _truth(rows: list, place: tuple):
    """The line that most often took the time right before and at `place`; None where that is `place` itself, or none stands out."""
    votes: dict = {}
    for index in [index for index in range(len(rows) - 1) if rows[index][0] == place]:
        around = range(max(0, index - BEFORE), index + 1)
        lengths = [(rows[each + 1][1] - rows[each][1], rows[each][0]) for each in around]
        longest, line = max(lengths, key=lambda length: length[0])
        if longest >= LATE_NS and longest >= MOST_PART * sum(length for length, _ in lengths):
            votes[line] = votes.get(line, 0) + longest
    best = max(votes, key=votes.get, default=None)
    return None if best == place else best


def _busiest_before(rows: list, place: tuple):
    """The line that took most of the milliseconds before `place`, in the function that took most of them; None as above."""
    functions: dict = {}
    lines: dict = {}
    for index in [index for index in range(1, len(rows) - 1) if rows[index][0] == place]:
        end = rows[index + 1][1]
        for each in range(index, -1, -1):
            line, began = rows[each]
            if line is not None:
                functions[line[0]] = functions.get(line[0], 0) + rows[each + 1][1] - began
                lines[line] = lines.get(line, 0) + rows[each + 1][1] - began
            if end - began >= LATE_NS:
                break
    busiest = max(functions, key=functions.get, default=None)
    if busiest is None or functions[busiest] < max(WAITED_NS, MOST_PART * sum(functions.values())):
        return None
    best = max([line for line in lines if line[0] is busiest], key=lines.get)
    return None if best == place else best


class CloserLook(Observer):
    """Looks for one step, in the process that trains."""

    def on_look(self, step: int) -> None:
        """Begin when there is a place to look at."""
        if wanted and not _looking:
            begin()
            if _looking:
                loop.call_at(step + 1, self.on_exit)
                fact("slowed", step=step)

    def on_exit(self) -> None:
        """Do not trace the end of the program."""
        end()


def after_fork() -> None:
    """A forked child has its own samples."""
    global _looking
    _looking = False
    for frame in _frames:
        tracing.leave(frame, _line)
    wanted.clear()
    _waited.clear()
    _late.clear()
    _rows.clear()
    _frames.clear()
