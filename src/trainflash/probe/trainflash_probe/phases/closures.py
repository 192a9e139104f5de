"""Closures that an optimizer calls for a loss and its gradients: what they do beside backward is forward.

Modules say themselves when their forward runs. In a program without modules nothing does, and the closure's work would count as the
update's: there all of a closure but its backward is a span of Fwd.
"""

from __future__ import annotations

import functools
import types

from .. import codes
from ..writer import emit, emit_at
from .loop import loop

_emit_now = emit  # where a device is timed, `emit` records an event too, which can't be done afterwards
bare = False  # the newest backward inside an update had no module's forward before it
running = None  # the spans of the closure that runs now


def bracketed(args: tuple, kwargs: dict) -> tuple:
    """The arguments of `optimizer.step`, with the closure among them as a span, where it is a function and no object of more."""
    if len(args) > 1 and _is_plain(args[1]):
        return (args[0], _span(args[1]), *args[2:]), kwargs
    if _is_plain(kwargs.get("closure")):
        return args, {**kwargs, "closure": _span(kwargs["closure"])}
    return args, kwargs


def _is_plain(closure: object) -> bool:
    return type(closure) in (types.FunctionType, types.MethodType)


def _span(original):
    @functools.wraps(original)
    def closure(*args, **kwargs):
        global bare, running
        outer, running = running, _Forward()
        running.begin()
        try:
            return original(*args, **kwargs)
        finally:
            running.end()
            running = outer
            bare = not loop.forwards

    return closure


class _Forward:
    """The spans of one call of a closure: to its first backward, between two of them, and to its end."""

    def __init__(self) -> None:
        self._opened = False

    def begin(self) -> None:
        """Also behind a backward, which may be that of one part of the batch."""
        if not self._opened:
            self._opened = True
            loop.on_backward.append(self.backward_begins)
            emit(codes.FWD)

    def backward_begins(self, tensors: tuple, grad_tensors: object) -> None:
        self.end(loop.began_ns)

    def end(self, at: int = 0) -> None:
        """`at`: nanoseconds since the probe's base at which it ended, 0: now."""
        if self._opened:
            self._opened = False
            loop.on_backward = [method for method in loop.on_backward if method != self.backward_begins]
            emit_at(codes.FWD_END, at) if at and emit is _emit_now else emit(codes.FWD_END)
