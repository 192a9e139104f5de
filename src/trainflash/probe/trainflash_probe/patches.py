"""What stands in for something of the program's or of a library's, so that nobody can tell but by asking what it is."""

from __future__ import annotations

import contextlib
import functools

from . import own
from .guard import swallow


class Patch:
    """`ours` in place of what `owner.name` is now, on and off. What somebody else puts there is never written over."""

    def __init__(self, owner: object, name: str, ours) -> None:
        self._owner, self._name, self._ours = owner, name, ours
        self._original = getattr(owner, name)

    def on(self) -> None:
        """Put ours there, unless something else than the original stands there."""
        self._exchange(self._original, self._ours)

    def off(self) -> None:
        """Put the original back, unless something else than ours stands there, which may well call ours."""
        self._exchange(self._ours, self._original)

    def _exchange(self, old, new) -> None:
        if getattr(self._owner, self._name) is old:
            setattr(self._owner, self._name, new)


def noted(original, keep, *, source: str):
    """`original`, before which `keep` is told the owner's [file, line, function] that led to the call, if any, and its arguments.

    What `keep` raises is said under `source`, and the call goes on.
    """

    @like(original)
    def wrapped(*args, **kwargs):
        try:
            place = own.caller()
            if place is not None:
                keep(place, *args)
        except Exception as error:
            swallow(source, error)
        return original(*args, **kwargs)

    return wrapped


def like(original):
    """Decorator: a function in the shape of `original`. What a class may hold without its becoming a method, as built-ins, stays so."""
    if hasattr(type(original), "__get__"):
        return functools.partial(_function, original)
    return functools.partial(_built_in, original)


def _function(original, run):
    """`functools.wraps` alone shows other arguments to `inspect.getfullargspec`, which does not look at what is wrapped.

    What wraps something itself shows it those of its own.
    """
    import inspect  # torch has it; a program without torch is not to wait for it

    run = functools.wraps(original)(run)
    if hasattr(original, "__wrapped__"):
        return run
    with contextlib.suppress(TypeError, ValueError):  # what tells no signature
        run.__signature__ = inspect.signature(original)
    return run


def _built_in(original, run):
    """An object that runs `run` and says of itself all that `original` says; pickle finds it under its name."""

    class BuiltIn:
        __slots__ = ("__weakref__",)
        __call__ = staticmethod(run)

        def __getattribute__(self, name):
            return getattr(original, name)

        def __repr__(self):
            return repr(original)

        def __eq__(self, other):
            return self is other or original == other

        def __hash__(self):
            return hash(original)

    return BuiltIn()
