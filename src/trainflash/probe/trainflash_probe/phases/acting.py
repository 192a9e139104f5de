"""Ends Data where acting ends: the function that collects a rollout is bracketed once it is known.

A rollout is open from its first forward until training resumes, and what the owner does with it in between (rewards, advantages) would
count as Data too. Where all acting is done in a loop of one function, which returns before training begins, that function is the
data function: its calls from that place are Data, and what follows is the owner's own code. Where the loop that acts is the one that
trains, or lies in a function that trains as well, everything stays as it is.

A function that the same loop calls elsewhere, that acts and gives nothing but numbers, tests the policy: it is an evaluation.
"""

from __future__ import annotations

import dis
import itertools
from _thread import get_ident
from sys import _getframe
from typing import NamedTuple

from .. import own
from ..guard import swallow
from ..objects import is_tensor
from ..writer import fact
from . import gaps, stack
from .brackets import exchange, functions_of
from .loop import loop
from .spans import data_span, evaluation_span

DEEPEST = 24  # owner's frames looked at
TRIES = 3  # rollouts, after which no function is looked for any more
TEST_TRIES = 256  # rollouts from other places, after which no test is looked for any more
MOST_NUMBERS = 64
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
        if _bracket(*found):
            gaps.collects()
            loop.on_rolling.append(Tests(*found).on_rolling)


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


def _is_called_from(frame, caller: _Call) -> bool:
    """Whether the function of ours in `frame` was called from there, on the training thread."""
    called_from = own.own_frame(frame.f_back)
    return called_from is not None and called_from.f_code is caller.code and called_from.f_lasti == caller.at and loop.tid == get_ident()


def _bracket(collects: _Call, caller: _Call) -> bool:
    """Make the calls from that place Data; False where no function has the code."""

    def wrap(original):
        span = data_span(original)

        def call(*args, **kwargs):
            collecting = False
            try:
                collecting = _is_called_from(_getframe(), caller)
                if collecting:
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
    return bool(functions)


class Tests:
    """Looks for functions that test the policy, and makes their calls evaluations from the second one on."""

    def __init__(self, collects: _Call, caller: _Call) -> None:
        self._collects, self._caller = collects, caller
        self._left = TEST_TRIES
        self._known: set = set()

    def on_rolling(self, begins: bool) -> None:
        """The first forward of a rollout that nothing brackets is about to run."""
        if not begins:
            return
        self._left -= 1
        if not self._left or gaps.compiles():
            loop.remove(self.on_rolling)
            return
        found = self.tester(_calls())
        if found is not None and found[0].code not in self._known:
            self._known.add(found[0].code)
            for function in functions_of(found[0].code, found[0].space):
                exchange(function, _Tested(found[1]).wrap)

    def tester(self, acts: list):
        """Of the calls that led to acting: the one that the loop makes from another place, in which a loop acts, and that call; or None."""
        for depth, mine in enumerate(acts[:-1]):
            inner = acts[depth + 1 :]
            if mine.code is not self._caller.code or mine.at == self._caller.at or not _in_loop(mine.code, mine.at):
                continue
            if inner[0].code is self._collects.code or inner[0].code.co_flags & _SUSPENDS:
                return None
            return (inner[0], mine) if any([_in_loop(each.code, each.at) for each in inner]) else None
        return None


class _Tested:
    """A function whose calls from one place may be tests: its first call says so."""

    def __init__(self, caller: _Call) -> None:
        self._caller = caller
        self._tests = None
        self._trained = False

    def wrap(self, original):
        span = evaluation_span(original)

        def call(*args, **kwargs):
            try:
                here = self._tests is not False and _is_called_from(_getframe(), self._caller)
            except Exception as error:
                swallow("acting", error)
                here = False
            if not here:
                return original(*args, **kwargs)
            return span(*args, **kwargs) if self._tests else self._first(original, args, kwargs)

        return call

    def _first(self, original, args: tuple, kwargs: dict):
        steps = loop.steps
        loop.on_backward.append(self._backward_begins)
        try:
            result = original(*args, **kwargs)
        finally:
            loop.on_backward = [method for method in loop.on_backward if method != self._backward_begins]
        try:
            self._tests = not self._trained and loop.steps == steps and are_numbers(result)
        except Exception as error:
            self._tests = False
            swallow("acting", error)
        return result

    def _backward_begins(self, tensors: tuple, grad_tensors: object) -> None:
        self._trained = True


def are_numbers(value: object, left: int = MOST_NUMBERS) -> bool:
    """Whether `value` is a number, or a short tuple, list or dictionary of nothing but numbers."""
    if type(value) in (tuple, list, dict):
        parts = list(value.values()) if type(value) is dict else value
        return 0 < len(parts) <= left and all([are_numbers(each, 0) for each in parts])
    if is_tensor(value):
        return value.dim() == 0
    return type(value) in (int, float) or (type(value).__module__ == "numpy" and value.ndim == 0)
