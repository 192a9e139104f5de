"""Functions and methods of torch that are watched for one step, by a torch function mode: what they are stays what it is.

Programs compare functions of torch by identity, keep tables of them, and put others in their place; nothing of torch is touched here. (A
`__getitem__` once set on `torch.Tensor` and taken away again even leaves all tensors sequences to C, which no constructor takes for
numbers.) The mode stands at the bottom of the stack, where nobody's leaving of another one takes it off, but above a device of torch's
own, which counts on that place.
"""

from __future__ import annotations

import functools
import sys
import warnings
from threading import get_ident

from .. import own
from ..patches import Patch, like
from ..phases import unseen
from ..phases.loop import loop
from . import value_uses

_on: list = []  # modes of ours
_patches: list = []  # what goes with them


class EntryPoints:
    """What is watched, and how to watch no more.

    Only the training thread is watched, outside of evaluations, of compilations and of watched calls themselves.
    """

    def __init__(self, torch) -> None:
        self._is_compiling = torch.compiler.is_compiling
        self._watched: dict = {}  # function of torch -> what runs it
        self._everything = None  # what runs all others
        self._patches: list = []
        self._mode = None

    def watch(self, owner: object, name: str, watched) -> None:
        """Have `watched(original, args, kwargs, caller)` run `owner.name`: `caller` is the frame that asks for it."""
        self.watch_all([getattr(owner, name)], watched)

    def watch_all(self, functions: list, watched) -> None:
        """`watch` for functions and methods that are at hand."""
        self._watched.update(dict.fromkeys(functions, watched))
        self._begin()

    def watch_everything(self, watched) -> None:
        """`watch` for whatever of torch is called."""
        self._everything = watched
        self._begin()

    def _begin(self) -> None:
        if self._mode is None:
            self._mode = _mode_class()(self)
            _put_on(self._mode)

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
        mode, self._mode, self._everything = self._mode, None, None
        self._watched.clear()
        if mode is not None and not _taken_off(mode):
            loop.call_at(loop.steps + 1, lambda: _taken_off(mode))  # it is off while what it handles runs, and comes back after that

    def run(self, function, args: tuple, kwargs: dict, caller) -> object:
        """`function(*args, **kwargs)`, watched or not."""
        watched = self._watched.get(function, self._everything) if type(function).__hash__ else None  # a library may tell of objects
        if watched is None or loop.tid != get_ident() or loop.evaluating or self._is_compiling() or unseen.recorded():
            return function(*args, **kwargs)
        return watched(function, args, kwargs, caller)


def _exchange(change) -> None:
    """Put `change(the modes of this thread, the bottom first)` in their place."""
    overrides = sys.modules["torch.overrides"]
    stack = [overrides._pop_mode() for _ in range(overrides._len_torch_function_stack())]
    stack.reverse()
    for mode in change(stack):
        overrides._push_mode(mode)


def _put_on(mode) -> None:
    """A mode as the lowest of this thread."""
    if not _on:
        _patches[:] = _beside()
        for patch in _patches:
            patch.on()
    _on.append(mode)
    _exchange(lambda stack: [*stack[: _of_device(stack)], mode, *stack[_of_device(stack) :]])


def _taken_off(mode) -> bool:
    """Take a mode off this thread's stack; False where it does not lie there."""
    lay: list = []
    _exchange(lambda stack: [each for each in stack if each is not mode or lay.append(each)])
    if lay:
        _on.remove(mode)
    if not _on:
        for patch in _patches:
            patch.off()
    return bool(lay)


def _beside() -> tuple:
    """What would tell that a mode of ours is on."""
    overrides = sys.modules["torch.overrides"]
    return (
        Patch(overrides, "has_torch_function", _question(overrides.has_torch_function)),
        Patch(warnings, "showwarning", _shown(warnings.showwarning)),
    )


def _question(original):
    """torch's transformer asks whether anybody wants to be told, and takes a slower path for them: not for us."""

    @like(original)
    def has_torch_function(args):
        whole: list = []
        _exchange(lambda stack: whole.extend(stack) or [each for each in stack if type(each) is not _mode_class()])
        try:
            return original(args)
        finally:
            _exchange(lambda stack: whole)

    return has_torch_function


def _shown(original):
    """A warning is one of the line that asks torch, and is shown if it is new there: between the two stand our own lines."""

    @like(original)
    def showwarning(message, category, filename, lineno, file=None, line=None):
        frame = sys._getframe(1) if filename.startswith(own.PROBE) else None
        while frame is not None and frame.f_code is not EntryPoints.run.__code__:
            frame = frame.f_back
        if frame is None:
            return original(message, category, filename, lineno, file, line)
        caller = frame.f_locals["caller"]
        names = caller.f_globals
        seen = names.setdefault("__warningregistry__", {})
        return warnings.warn_explicit(message, category, caller.f_code.co_filename, caller.f_lineno, names.get("__name__"), seen)

    return showwarning


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
    by_python = sys.modules["torch.overrides"].handle_torch_function.__code__

    class Watching(sys.modules["torch.overrides"].TorchFunctionMode):
        def __init__(self, points: EntryPoints) -> None:
            super().__init__()
            self._points = points

        def __torch_function__(self, func, types, args=(), kwargs=None):
            caller = sys._getframe(1)
            if caller.f_code is by_python:  # for the function itself, whose caller asks
                caller = caller.f_back.f_back
            return self._points.run(func, args, kwargs or {}, caller)

    return Watching
