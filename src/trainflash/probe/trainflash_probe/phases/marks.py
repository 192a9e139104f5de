"""Phases that owners mark by hand: `with trainflash_probe.phase("Data"): …`."""

from __future__ import annotations

from threading import get_ident

from .. import codes
from ..guard import swallow
from ..writer import emit
from . import spans
from .loop import loop

NAMES = ("Data", "H2D", "Fwd", "Bwd", "Opt", "Eval", "Ckpt", "Log")
OF_THE_STEP = ("Fwd", "Bwd", "Opt")  # whoever marks these trains
NO_FORWARD_INSIDE = ("Data", "Ckpt", "Log")  # a model that runs in there makes data, or something to look at


def _nothing() -> None:
    pass


def enter(name: str):
    """Begin a mark on this thread; returns what ends it. Only a stop at a step boundary is raised."""
    if name not in NAMES:
        return _nothing
    if loop.tid != get_ident() and not (name in OF_THE_STEP and loop.latch(get_ident())):
        return _nothing
    if name in OF_THE_STEP:
        loop.latched = True
    loop.started = True
    try:
        return _enter(name)
    except Exception as error:
        swallow("mark", error)
        return _nothing


def _enter(name: str):
    if name == "Eval":
        spans.enter_evaluation()
        return spans.leave_evaluation
    if name == "Data":
        loop.fetch_begins(0, -1)
    elif name in OF_THE_STEP:
        _step_goes_on(name)
    code = codes.FIRST_PHASE + 2 * codes.PHASES.index(name)
    in_fwd, in_log, in_ckpt = loop.in_fwd, loop.in_log, loop.in_ckpt
    loop.in_fwd = in_fwd or name in NO_FORWARD_INSIDE
    loop.in_log, loop.in_ckpt = in_log + (name == "Log"), in_ckpt + (name == "Ckpt")
    loop.begin(code)

    def leave() -> None:
        emit(code + 1)
        loop.in_fwd, loop.in_log, loop.in_ckpt = in_fwd, in_log, in_ckpt
        if name == "Opt" and not loop.clock.sees_steps:
            loop.mark_update()

    return leave


def _step_goes_on(name: str) -> None:
    """Training is resumed; a step that only marks know ends here if no mark of Data has ended it."""
    if loop.evaluating:
        loop.close_eval()
    if loop.pending and not loop.clock.sees_steps and not loop.evaluating and (name == "Opt" or not loop.clock.fetched) and loop._quiet():
        loop.boundary()
