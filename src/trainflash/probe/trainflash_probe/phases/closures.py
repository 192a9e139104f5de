"""Closures that an optimizer calls for a loss and its gradients: what they do before backward is forward.

Modules say themselves when their forward runs. In a program without modules nothing does, and the closure's work would count as the
update's: there a closure is a span of Fwd until its first backward begins.
"""

from __future__ import annotations

import functools

from .. import codes
from ..writer import emit, emit_at
from .loop import loop

_emit_now = emit  # where a device is timed, `emit` records an event too, which can't be done afterwards
bare = False  # the newest backward inside an update had no module's forward before it


def bracketed(args: tuple, kwargs: dict) -> tuple:
    """The arguments of `optimizer.step`, with the closure among them as a span."""
    if len(args) > 1 and callable(args[1]):
        return (args[0], _span(args[1]), *args[2:]), kwargs
    if callable(kwargs.get("closure")):
        return args, {**kwargs, "closure": _span(kwargs["closure"])}
    return args, kwargs


def _span(original):
    def backward_begins(tensors: tuple, grad_tensors: object) -> None:
        end(loop.began_ns)

    def end(at: int = 0) -> None:
        nonlocal opened
        if opened:
            opened = False
            loop.on_backward = [method for method in loop.on_backward if method is not backward_begins]
            emit_at(codes.FWD_END, at) if at and emit is _emit_now else emit(codes.FWD_END)

    opened = False

    @functools.wraps(original)
    def closure(*args, **kwargs):
        global bare
        nonlocal opened
        opened = True
        loop.on_backward.append(backward_begins)
        emit(codes.FWD)
        try:
            return original(*args, **kwargs)
        finally:
            end()
            bare = not loop.forwards

    return closure
