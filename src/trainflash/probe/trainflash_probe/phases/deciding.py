"""The owner's line that decides how often something happens: outside of functions that do nothing else whenever they are called.

Such a function is one whose code runs the call on each of its ways from begin to return, taking the loops around it for entered, and
which was never on the stack when a step ended: what runs the loop decides. Frames of libraries in between, but for decorators, end the
search.
"""

from __future__ import annotations

import dis
import functools
import sys

from .. import own

_ENDS = ("RETURN_VALUE", "RETURN_CONST")
_RAISES = ("RAISE_VARARGS", "RERAISE")
_ALWAYS = ("JUMP_FORWARD", "JUMP_ABSOLUTE", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
_HANDLERS = ("SETUP_FINALLY", "SETUP_WITH", "SETUP_ASYNC_WITH", "SETUP_CLEANUP")  # up to Python 3.10: taken by exceptions only
_LOOP = "FOR_ITER"
_OF_CALLERS = 0x2A0  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR: who resumes one is not who called it
_DECORATORS = ("decorate_context", "inner", "wrapper", "wrapped")  # torch.no_grad(), contextlib and most others: no function of its own

_trains: set = set()  # codes that ran when a step ended


def note_loop() -> None:
    """A step ends: what runs now is the loop, or runs it."""
    frame = own.own_frame(sys._getframe())
    while frame is not None:
        _trains.add(frame.f_code)
        frame = own.own_frame(frame.f_back)


def place() -> list:
    """[file, line, function] of the line that decides about what is done right now; None without code of the owner's."""
    innermost = frame = own.own_frame(sys._getframe())
    if frame is None:
        return None
    while _trains and frame.f_code not in _trains and always(frame.f_code, frame.f_lasti):
        frame = frame.f_back
        while frame is not None and frame.f_code.co_name in _DECORATORS and not own.is_own(frame.f_code):
            frame = frame.f_back
        if frame is None or not own.is_own(frame.f_code):
            return own.place_of_frame(innermost)
    return own.place_of_frame(frame)


@functools.lru_cache(maxsize=256)
def always(code, at: int) -> bool:
    """Whether each run of `code` that returns executes the instruction at offset `at`; False for generators and coroutines."""
    if code.co_flags & _OF_CALLERS:
        return False
    steps = [(step.offset, step.opname, step.argval) for step in dis.get_instructions(code)]
    index = {offset: number for number, (offset, _, _) in enumerate(steps)}
    call = max(number for number, (offset, _, _) in enumerate(steps) if offset <= at)
    around = {n for n, (_, name, target) in enumerate(steps) if name == _LOOP and n < call < index.get(target, 0)}  # loops that it is in
    seen, todo = set(), [0]
    while todo:
        number = todo.pop()
        if number in seen or number == call or number >= len(steps):
            continue
        seen.add(number)
        _, name, target = steps[number]
        if name in _ENDS:
            return False
        if name in _RAISES:
            continue
        if isinstance(target, int) and name not in _HANDLERS and ("JUMP" in name or name in (_LOOP, "SEND")) and number not in around:
            if index[target] in around and index[target] < number:
                return False  # a turn of the loop without it
            todo.append(index[target])
        if name not in _ALWAYS:
            todo.append(number + 1)
    return True
