"""Ends Data where acting ends: the function that collects a rollout is bracketed once it is known.

A rollout is open from its first forward until training resumes, and what the owner does with it in between (rewards, advantages) would
count as Data too. Where all acting is done in a loop of one function, which returns before training begins, that function is the
data function: its calls from that place are Data, and what follows is the owner's own code. Where the loop that acts is the one that
trains, or lies in a function that trains as well, everything stays as it is.
"""

from __future__ import annotations

import dis
import itertools
from _thread import get_ident
from sys import _getframe
from typing import NamedTuple

from .. import own
from ..guard import swallow
from ..writer import fact
from . import gaps, stack
from .brackets import exchange, functions_of
from .loop import loop
from .spans import data_span

DEEPEST = 24  # owner's frames looked at
TRIES = 3  # rollouts, after which no function is looked for any more
_SUSPENDS = 0x20 | 0x80 | 0x200  # generators and coroutines: they run on after they have handed something over

_acts: list = []
_tries = 0


class _Call(NamedTuple):
    """A function of the owner's on the stack, and the instruction at which it stands."""

    code: object
    at: int
    space: dict


def install() -> None:
    """Listen to rollouts."""
    loop.on_rolling.append(on_rolling)


def on_rolling(begins: bool) -> None:
    """The first forward of a rollout is about to run, or training resumes after one."""
    global _acts, _tries
    if begins:
        _acts = _calls()
        return
    _tries += 1
    acts, _acts = _acts, []
    if _tries > TRIES or gaps.compiles():
        loop.remove(on_rolling)
        return
    found = collector(acts, _calls())
    if found is not None:
        loop.remove(on_rolling)
        _bracket(*found)


def _calls() -> list:
    """The owner's functions that run, outermost first; none where they are too many."""
    seen = [_Call(frame.f_code, frame.f_lasti, frame.f_globals) for frame in itertools.islice(stack.frames(), DEEPEST + 1)]
    return seen[::-1] if len(seen) <= DEEPEST else []


def collector(acts: list, trains: list):
    """Of the calls that led to acting and to training: the one that collects, and the call that it is made from; None without one."""
    for depth, (mine, other) in enumerate(zip(acts, trains)):
        if mine.code is not other.code:
            return None
        if mine.at == other.at:
            continue
        inner = acts[depth + 1 :]
        if not inner or inner[0].code in [each.code for each in trains] or inner[0].code.co_flags & _SUSPENDS:
            return None
        if _in_loop(mine.code, mine.at, without=other.at) or not any([_in_loop(each.code, each.at) for each in inner]):
            return None
        return inner[0], mine
    return None


def _in_loop(code, at: int, without: int = -1) -> bool:
    """Whether a loop of this code holds the instruction `at`, and not `without`."""
    for each in dis.get_instructions(code):
        if each.opcode in dis.hasjrel or each.opcode in dis.hasjabs:
            first, last = each.argval, each.offset
            if first <= at <= last and not first <= without <= last:
                return True
    return False


def _bracket(collects: _Call, caller: _Call) -> None:
    code, at = caller.code, caller.at

    def wrap(original):
        span = data_span(original)

        def call(*args, **kwargs):
            collecting = False
            try:
                called_from = own.own_frame(_getframe(1))
                collecting = called_from is not None and called_from.f_code is code and called_from.f_lasti == at
                if collecting and loop.tid == get_ident():
                    loop.close_eval()  # from this place nothing is evaluated
            except Exception as error:
                swallow("acting", error)
            return (span if collecting else original)(*args, **kwargs)

        return call

    functions = functions_of(collects.code, collects.space)
    for function in functions:
        exchange(function, wrap)
    if functions:
        fact("data_function", at=own.place_of_code(collects.code))
