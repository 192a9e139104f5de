"""Brackets functions of the owner's from within: their code object is exchanged, so every alias of them is covered."""

from __future__ import annotations

import gc
import types

from .loop import loop
from .spans import data_span

_GENERATOR = 0x20


def _trampoline(*args, **kwargs):
    run = "RUN"
    return run(*args, **kwargs)


def bracket_code(code, place: dict) -> None:
    """Make every call of the functions with this code a span of Data. `place` is the namespace where they are looked up first."""
    for function in functions_of(code, place):
        exchange(function, _each_item if code.co_flags & _GENERATOR else data_span)


def functions_of(code, place: dict) -> list:
    """Functions that run this code."""
    near = place.get(code.co_name)
    if isinstance(near, types.FunctionType) and near.__code__ is code:
        return [near]
    return [item for item in gc.get_referrers(code) if isinstance(item, types.FunctionType) and item.__code__ is code]


def exchange(function, wrap) -> None:
    """Make every call of `function`, by whatever name, a call of `wrap(the function as it was)`."""
    code = function.__code__
    inner = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    inner.__kwdefaults__ = function.__kwdefaults__
    inner.__qualname__ = function.__qualname__
    run = wrap(inner)
    function.__code__ = _trampoline.__code__.replace(
        co_consts=tuple(run if constant == "RUN" else constant for constant in _trampoline.__code__.co_consts),
        co_freevars=code.co_freevars,
        co_name=code.co_name,
    )


class _Items:
    """A generator whose every item is a span of Data."""

    def __init__(self, generator) -> None:
        self._generator = generator
        self._advance = data_span(generator.__next__)
        self.send, self.throw, self.close = generator.send, generator.throw, generator.close

    def __iter__(self):
        return self

    def __next__(self):
        loop.by_position = False  # this bracket is exact
        return self._advance()


def _each_item(function):
    def run(*args, **kwargs):
        return _Items(function(*args, **kwargs))

    return run
