"""Modes that are on while the network runs: one of the owner's, or one of torch's that is there to look at operators, passes each call of
torch through Python.
"""

from __future__ import annotations

import types

from .. import own
from ..objects import attributes_of
from ..phases import unseen
from ..phases.loop import loop
from ..phases.observer import Observer
from ..writer import fact
from . import settings

UNTIL = 40  # completed steps in which a mode is looked for
SEEN = 3  # forwards or backwards with the mode on
_LOOKING = ("torch.utils.flop_counter", "torch.utils._debug_mode", "torch.testing.", "torch.distributed._tools.")


class ModeFacts(Observer):
    """Looks for modes in some early forwards and backwards."""

    def __init__(self, torch) -> None:
        native = torch._C
        self._stacks = [
            (getattr(native, length, None), getattr(native, item, None))
            for length, item in (
                ("_len_torch_dispatch_stack", "_get_dispatch_stack_at"),
                ("_len_torch_function_stack", "_get_function_stack_at"),
            )
        ]
        self._stacks = [stack for stack in self._stacks if None not in stack]
        self._seen: dict = {}  # class of a mode -> times

    def on_forward(self, module: object, args: tuple, kwargs: dict) -> None:
        """A root is about to run."""
        self._look()

    def on_backward(self, tensors: tuple, grad_tensors: object) -> None:
        """A mode may be on around backward too."""
        self._look()

    def on_boundary(self, step: int) -> None:
        """Listen no more after the first steps."""
        if step >= UNTIL:
            loop.remove(self.on_forward, self.on_backward, self.on_boundary)

    def _look(self) -> None:
        if loop.evaluating or loop.eval_depth:
            return
        modes = [item(index) for length, item in self._stacks for index in range(length())]
        for kind in map(type, [*unseen.hidden, *modes]):
            times = self._seen[kind] = self._seen.get(kind, 0) + 1
            if times == SEEN:
                self._tell_mode(kind)

    def _tell_mode(self, kind: type) -> None:
        method = kind.__dict__.get("__torch_dispatch__") or kind.__dict__.get("__torch_function__")
        method = _plain(method)
        code = own.code_of(method)
        value = f"{kind.__qualname__} sees each call of torch"
        if code is not None and own.is_own(code):
            fact("setting", name="python_mode", value=value, at=own.place_of_function(method))
        elif kind.__module__.startswith(_LOOKING):
            fact("setting", name="looking_mode", value=value, at=settings.place_of("looking_mode"))


def _plain(function: object):
    """The owner's function inside methods and decorators: torch hides modes from its compiler by one."""
    while True:
        if type(function) in (types.MethodType, staticmethod, classmethod):
            function = function.__func__
        elif "__wrapped__" in attributes_of(function):
            function = attributes_of(function)["__wrapped__"]
        else:
            return function
