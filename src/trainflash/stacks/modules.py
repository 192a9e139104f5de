"""Forward's time outside of networks: in front of the first call of one in a step, or behind it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from trainflash.stacks.frames import Stack, calls_module

_LOSS = "torch/nn/modules/loss.py"

Calls = dict[tuple[str, str], int]  # file and name of a function that calls modules -> the first line at which it does
Bare = frozenset[tuple[str, str]]  # file and name of forwards of modules without parameters, which are no networks


def module_calls(stacks: Iterable[Stack], bare: Bare = frozenset()) -> Calls:
    """Where modules are called, losses and those without parameters left out, from the stacks of forwards."""
    found: Calls = {}
    for stack in stacks:
        at = _first_call(stack, bare)
        if at and not any(frame.location.file.endswith(_LOSS) for frame in stack[at:]):
            caller = stack[at - 1].location
            key = caller.file, caller.function
            found[key] = min(found.get(key, caller.line), caller.line)
    return found


def beside_modules(stack: Stack, calls: Calls, bare: Bare = frozenset()) -> Literal["ahead", "behind"] | None:
    """Where a stack of forward stands that is inside of no network; None for one that is, and where no function above it calls one."""
    if _first_call(stack, bare) is not None:
        return None
    for frame in reversed(stack):
        first = calls.get((frame.location.file, frame.location.function))
        if first is not None:
            return "ahead" if frame.location.line < first else "behind"
    return None


def _first_call(stack: Stack, bare: Bare) -> int | None:
    """Place of the first frame in which a module is called that is not bare."""
    for place, frame in enumerate(stack):
        called = next((each for each in stack[place + 1 :] if not calls_module(each)), None)
        if calls_module(frame) and (called is None or (called.location.file, called.location.function) not in bare):
            return place
    return None
