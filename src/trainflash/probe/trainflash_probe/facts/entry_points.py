"""Functions and methods of torch that are watched for one step, by a torch function mode: what they are stays what it is.

Programs compare functions of torch by identity, keep tables of them, and put others in their place; nothing of torch is touched here. The
mode stands at the bottom of the stack, where nobody's leaving of another one takes it off, but above a device of torch's own, which
counts on that place.
"""

from __future__ import annotations

import functools
import sys
from threading import get_ident

from ..patches import Patch, like
from ..phases.loop import loop
from . import value_uses


class EntryPoints:
    """What is watched, and how to watch no more.

    Only the training thread is watched, outside of evaluations, of compilations and of watched calls themselves.
    """

    def __init__(self, torch) -> None:
        self._is_compiling = torch.compiler.is_compiling
        self._watched: dict = {}  # function of torch -> what runs it
        self._patches: list = []
        self._mode = None

    def watch(self, owner: object, name: str, watched) -> None:
        """Have `watched(original, args, kwargs, caller)` run `owner.name`: `caller` is the frame that asks for it."""
        self._watched[getattr(owner, name)] = watched
        if self._mode is None:
            self._mode = _mode_class()(self)
            _exchange(lambda stack: [*stack[: _of_device(stack)], self._mode, *stack[_of_device(stack) :]])

    def watch_unasked(self, owner: object, name: str, watched) -> None:
        """`watch` for a function of which torch tells no mode: it is exchanged, where the program handles it nowhere as a value."""
        if name in value_uses.attributes():
            return
        original = getattr(owner, name)
        self._watched[original] = watched

        @like(original)
        def wrapped(*args, **kwargs):
            return self.run(original, args, kwargs, sys._getframe(1))

        self._patches.append(Patch(owner, name, wrapped))
        self._patches[-1].on()

    def restore(self) -> None:
        """Watch no more."""
        for patch in self._patches:
            patch.off()
        self._patches.clear()
        mode, self._mode = self._mode, None
        self._watched.clear()
        if mode is not None:
            _exchange(lambda stack: [each for each in stack if each is not mode])

    def run(self, function, args: tuple, kwargs: dict, caller) -> object:
        """`function(*args, **kwargs)`, watched or not."""
        watched = self._watched.get(function)
        if watched is None or loop.tid != get_ident() or loop.evaluating or self._is_compiling():
            return function(*args, **kwargs)
        return watched(function, args, kwargs, caller)


def _exchange(change) -> None:
    """Put `change(the modes of this thread, the bottom first)` in their place."""
    overrides = sys.modules["torch.overrides"]
    stack = [overrides._pop_mode() for _ in range(overrides._len_torch_function_stack())]
    stack.reverse()
    for mode in change(stack):
        overrides._push_mode(mode)


def others() -> bool:
    """Whether a torch function mode is on that is not ours, on this thread."""
    native = sys.modules["torch"]._C
    modes = [native._get_function_stack_at(index) for index in range(native._len_torch_function_stack())]
    return any([type(mode) is not _mode_class() for mode in modes])


def _of_device(stack: list) -> int:
    """How many modes at the bottom are a device of torch's own: none or one."""
    return int(bool(stack) and type(stack[0]).__module__ == "torch.utils._device")


@functools.cache
def _mode_class() -> type:
    class Watching(sys.modules["torch.overrides"].TorchFunctionMode):
        def __init__(self, points: EntryPoints) -> None:
            super().__init__()
            self._points = points

        def __torch_function__(self, func, types, args=(), kwargs=None):
            return self._points.run(func, args, kwargs or {}, sys._getframe(1))

    return Watching
