"""No exception of the probe reaches the program: each is counted by the place that swallowed it, and reported as a fact."""

from __future__ import annotations

import signal
import types

swallowed: dict = {}  # place -> [count, last message]


def swallow(place: str, error: BaseException) -> None:
    """Count `error`; called from every `except Exception` of the probe."""
    let_through(error)
    entry = swallowed.setdefault(place, [0, ""])
    entry[0] += 1
    entry[1] = f"{type(error).__name__}: {error}"[:200]


def let_through(error: BaseException) -> None:
    """Raise what a signal handler of the program's raised while code of ours ran: it is meant for the program."""
    codes, trace = set(), error.__traceback__
    while trace is not None:
        codes.add(trace.tb_frame.f_code)
        trace = trace.tb_next
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    handlers = [getattr(each, "__func__", each) for each in handlers]
    if any([getattr(each, "__code__", None) in codes for each in handlers if isinstance(each, types.FunctionType)]):
        raise error


def counts() -> dict:
    """Swallowed exceptions by place, with the last message of each."""
    return {place: {"count": count, "last": last} for place, (count, last) in swallowed.items()}
