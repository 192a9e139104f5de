"""Which of the owner's lines between the phases are part of one.

A loss written as an expression, and what a method does around the networks that it calls, belong to the forward; an update written into the
loop belongs to Opt; but no function tells where they begin. So a few early steps are traced by lines. A line during which torch's count of
nodes of the graph grew made a part of the graph: Fwd; so did all that ran inside the forward of an autograd function of the owner's.
Lines from the first to the last change of a parameter after backward update: Opt.
All other lines (a metric, a schedule) stay what they are. The reader divides the gaps of the other steps as it was in the traced ones.
"""

from __future__ import annotations

import os
import sys
import time

from .. import own, tracing
from ..guard import swallow
from ..phases import gaps, own_updates
from ..phases.loop import loop
from ..phases.observer import Observer
from ..writer import fact
from .calls import FUNCTIONS

AT_STEPS = (9, 12, 22)  # completed steps; a census of operators has 6, 7 and 24
MAX_ROWS = 20_000  # lines of a step; more would slow it too much to say anything
SHORT_NS, NEAR_NS = 100_000, 50_000  # lines that are written together: so short, so near to each other

_clock = time.monotonic_ns


class Between(Observer):
    """Traces planned steps from one boundary to the next."""

    def __init__(self, torch) -> None:
        self._nodes = torch._C._autograd._get_sequence_nr
        self._plan = list(AT_STEPS)
        self._frames: list = []  # that ran already when the window began
        self._rows: list = []  # (began, ended, (code, line) or None, the graph grew, parameters changed, Python calls in it)
        self._calls = 0
        self._watched = None
        self._tracing = False
        self._step, self._backward_row = -1, 0
        self._line, self._began, self._count, self._state = None, 0, 0, None
        self._function = None  # frame of an autograd function's forward
        self._tracers = self._call, self._local  # each one object, by which it is known again
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        """A child, a worker of a DataLoader say, is not traced."""
        if self._tracing:
            self._end(write=False)

    def on_boundary(self, step: int) -> None:
        """End a window, begin a planned one; listen no more after the last."""
        if self._tracing:
            self._end(write=True)
        elif not self._plan:
            loop.remove(self.on_boundary, self.on_exit)
        if self._plan and step >= self._plan[0] and self._may_look():
            self._plan.pop(0)
            self._begin(step)

    def _may_look(self) -> bool:
        return tracing.free() and loop.gap is None and not gaps._compiles and not tracing.others_work()

    def on_exit(self) -> None:
        """Do not trace the end of the program."""
        if self._tracing:
            self._end(write=False)

    def on_backward(self, tensors: tuple, grad_tensors: object) -> None:
        """From here on parameters may change. Listens in a window only."""
        if self._tracing:
            self._note(own.own_frame(sys._getframe(1)))
            self._backward_row = len(self._rows)
            if own_updates.nobody_else_updates():
                found = own_updates.parameters_of(loop.trained) or own_updates.leaves_of(tensors)
                self._watched = own_updates.Watched(found) if found else None
                self._state = self._watched.state() if found else None

    def _begin(self, step: int) -> None:
        self._step, self._tracing, self._backward_row, self._watched, self._function = step, True, 0, None, None
        loop.on_backward.append(self.on_backward)
        fact("slowed", step=step)
        frame = sys._getframe(2)
        while frame is not None:
            if own.is_own(frame.f_code) and frame.f_trace is None:
                frame.f_trace = self._tracers[1]
                self._frames.append(frame)
            frame = frame.f_back
        self._count = self._nodes()
        self._line, self._began = _line_of(own.own_frame(sys._getframe(2))), _clock()
        tracing.begin(self._tracers[0])

    def _end(self, write: bool) -> None:
        tracing.end(self._tracers[0])
        self._note(None)
        self._tracing = False
        loop.on_backward = [method for method in loop.on_backward if method != self.on_backward]
        for frame in self._frames:
            tracing.leave(frame, self._tracers[1])
        rows, self._rows, self._watched, self._state = self._rows, [], None, None
        self._frames.clear()
        if write and len(rows) < MAX_ROWS and not gaps._compiles:
            self._write(rows)

    def _call(self, frame, event, argument):
        self._calls += 1
        if gaps._compiles or not self._tracing:
            tracing.end(self._tracers[0])  # Dynamo would compile us
            return None
        if tracing.asks(frame.f_code) and own.is_own(frame.f_code):
            self._end(write=False)
            return None
        if loop.in_fwd or loop.in_bwd or loop.in_data or loop.in_opt or not own.is_own(frame.f_code) or len(self._rows) >= MAX_ROWS:
            return None
        self._note(frame)
        if self._function is None and frame.f_back is not None and frame.f_back.f_code.co_filename.endswith(FUNCTIONS):
            self._function = frame
        return self._tracers[1]

    def _local(self, frame, event, argument):
        if event == "line":
            self._note(frame)
        elif event == "return":
            self._note(own.own_frame(frame.f_back))
            if frame is self._function:
                self._function = None
        return self._tracers[1]

    def _note(self, frame) -> None:
        """The line so far is over; `frame` is where the owner's code goes on."""
        try:
            ended, count = _clock(), self._nodes()
            state = self._watched.state() if self._watched is not None and not (loop.in_fwd or loop.in_bwd) else self._state
            if len(self._rows) < MAX_ROWS:
                grew = count != self._count or self._function is not None
                self._rows.append((self._began, ended, self._line, grew, state != self._state, self._calls))
            self._line, self._count, self._state, self._calls = _line_of(frame), count, state, 0
            self._began = _clock()
        except Exception as error:
            swallow("between", error)

    def _write(self, rows: list) -> None:
        graph = {row[2] for row in rows if row[3] and row[2] is not None}
        changes = [index for index, row in enumerate(rows) if row[4]]
        updating: set = set()
        update = None
        if changes:
            updating = {row[2] for row in rows[changes[0] : changes[-1] + 1] if row[2] is not None}
            first = next(index for index in range(self._backward_row, len(rows)) if rows[index][2] in updating)
            update = [rows[first][0], rows[changes[-1]][1]]
        least = min((row[1] - row[0] for row in rows), default=0)  # what tracing costs even the shortest line
        fact(
            "between",
            step=self._step,
            forward=_together([row for row in rows if row[2] in graph], least, update),
            rest=_together([row for row in rows if row[2] not in graph], least, update),
            update=update,
            forward_lines=[[own.path_of(code), line, own.name_of(code)] for code, line in graph],
            update_lines=[[own.path_of(code), line, own.name_of(code)] for code, line in updating],
        )


def _line_of(frame):
    return None if frame is None else (frame.f_code, frame.f_lineno)


def _together(rows: list, least: int, apart) -> list:
    """[began, ended, nanoseconds of the lines alone, lines and Python calls in them]: short neighbours as one.

    A long line, which may hold a phase, stands by itself; nothing is joined across the two times `apart`.
    """
    merged: list = []
    joins = False
    for began, ended, *_, calls in rows:
        long = ended - began > SHORT_NS
        if joins and not long and began - merged[-1][1] < NEAR_NS and not any(merged[-1][1] <= at <= began for at in apart or ()):
            merged[-1][1] = ended
            merged[-1][2] += ended - began - least
            merged[-1][3] += 1 + calls
        else:
            merged.append([began, ended, ended - began - (0 if long else least), 1 + calls])
        joins = not long
    return merged
