"""Forward's time outside of modules: in front of the first call of one in a step, or behind it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from trainflash.stacks.frames import Stack, calls_module

_LOSS = "torch/nn/modules/loss.py"

Calls = dict[tuple[str, str], int]  # file and name of a function that calls modules -> the first line at which it does


def module_calls(stacks: Iterable[Stack]) -> Calls:
    """Where modules are called, losses left out, from the stacks of forwards."""
    found: Calls = {}
    for stack in stacks:
        at = _first_call(stack)
        if at and not any(frame.location.file.endswith(_LOSS) for frame in stack[at:]):
            caller = stack[at - 1].location
            key = caller.file, caller.function
            found[key] = min(found.get(key, caller.line), caller.line)
    return found


def beside_modules(stack: Stack, calls: Calls) -> Literal["ahead", "behind"] | None:
    """Where a stack of forward stands that is inside of no module; None for one that is, and where no function above it calls modules."""
    if _first_call(stack) is not None:
        return None
    for frame in reversed(stack):
        first = calls.get((frame.location.file, frame.location.function))
        if first is not None:
            return "ahead" if frame.location.line < first else "behind"
    return None


def _first_call(stack: Stack) -> int | None:
    return next((place for place, frame in enumerate(stack) if calls_module(frame)), None)
