"""The owner's code that torch calls by itself while the network runs: hooks of modules, tensors and optimizers, and modes.

A mode of the owner's, or one of torch's that is there to look at operators, passes each call of torch through Python. Hooks are told by the
function, so that a reader finds its lines among the samples; what they do in forward or backward is no operator of the network.
"""

from __future__ import annotations

import functools
import itertools
import sys
import types

from .. import own
from ..objects import attributes_of, is_a, of_class
from ..parts import modules_in
from ..phases import own_updates, unseen
from ..phases.loop import loop
from ..phases.observer import Observer
from ..writer import fact
from . import settings

AT_STEP = 4  # completed steps: hooks are registered before training, or by its first steps
UNTIL = 40  # completed steps in which a mode is looked for
SEEN = 3  # forwards or backwards with the mode on
MAX_OBJECTS = 20_000
_OF_MODULES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_OF_PARAMETERS = ("_backward_hooks", "_post_accumulate_grad_hooks")
_GLOBAL = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks", "_global_backward_pre_hooks")
_LOOKING = ("torch.utils.flop_counter", "torch.utils._debug_mode", "torch.testing.", "torch.distributed._tools.")


class HookFacts(Observer):
    """Looks at hooks once, and for modes in some early forwards and backwards."""

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
        """Hooks once; listen no more after the first steps."""
        if step == AT_STEP:
            self._tell_hooks()
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

    def _tell_hooks(self) -> None:
        counted: dict = {}
        for hook in self._hooks():
            code = _code_of(hook)
            if code is not None and own.is_own(code):
                counted[code] = counted.get(code, 0) + 1
        if counted:
            fact("hooks", rows=[[own.place_of_code(code), times] for code, times in counted.items()])

    def _hooks(self):
        torch = sys.modules["torch"]
        for name in _GLOBAL:
            yield from (getattr(torch.nn.modules.module, name, None) or {}).values()
        for root in [root for root in (reference() for reference in loop.trained.values()) if root is not None]:
            for module in itertools.islice(modules_in(root), MAX_OBJECTS):
                for name in _OF_MODULES:
                    yield from (getattr(module, name, None) or {}).values()
        for parameter in own_updates.parameters_of(loop.trained)[:MAX_OBJECTS]:
            for name in _OF_PARAMETERS:
                yield from (getattr(parameter, name, None) or {}).values()


def _code_of(hook: object):
    """The code of a function, method, partial or callable object; None for a built-in one."""
    while is_a(hook, functools.partial):
        hook = functools.partial.func.__get__(hook)
    hook = _plain(hook)
    return own.code_of(hook) or own.code_of(_plain(of_class(type(hook), "__call__")))


def _plain(function: object):
    """The owner's function inside methods and decorators: torch hides modes from its compiler by one."""
    while True:
        if type(function) in (types.MethodType, staticmethod, classmethod):
            function = function.__func__
        elif "__wrapped__" in attributes_of(function):
            function = attributes_of(function)["__wrapped__"]
        else:
            return function
