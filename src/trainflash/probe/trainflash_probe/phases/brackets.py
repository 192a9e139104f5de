"""Brackets functions of the owner's from within: their code object is exchanged, so every alias of them is covered."""

from __future__ import annotations

import functools
import gc
import types

from .loop import loop
from .spans import data_span

_GENERATOR = 0x20
_COROUTINE = 0x80 | 0x100 | 0x200  # also what stands for one, and generators of them
_CALLERS = frozenset(("_getframe", "currentframe", "f_back"))  # who asks for these sees us between itself and its caller


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


def outermost(calls: list):
    """Of calls, the outermost whose code one function alone runs: what a decorator puts around it stands around others, too."""
    ordered = sorted(calls, key=lambda call: call.depth)
    for call in ordered[:-1]:
        if not call.code.co_freevars or len(functions_of(call.code, call.namespace)) < 2:
            return call
    return ordered[-1] if ordered else None


def may_exchange(code) -> bool:
    """Whether nobody can tell that calls of this code are passed on: no coroutine, and no code that looks at its callers."""
    stacklevel = any(isinstance(constant, tuple) and "stacklevel" in constant for constant in code.co_consts)
    return not (code.co_flags & _COROUTINE or stacklevel or _CALLERS.intersection(code.co_names))


def exchange(function, wrap) -> None:
    """Make every call of `function`, by whatever name, a call of `wrap(the function as it was)`, where it may be exchanged.

    Whoever asks the function for its signature, its source or its kind is told what it was.
    """
    code = function.__code__
    if not may_exchange(code):
        return
    inner = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    inner.__kwdefaults__ = function.__kwdefaults__
    inner.__qualname__ = function.__qualname__
    function.__code__ = _passage(code, _Run(inner, wrap(inner)))


class _Run:
    """What a passage calls; pickled by value it is the function alone, without us."""

    __slots__ = ("__call__", "_inner")

    def __init__(self, inner, run) -> None:
        self._inner, self.__call__ = inner, run

    def __reduce__(self):
        return functools.partial, (self._inner,)


class _Home(str):
    """The file of a passage: the owner's for whoever reads it, and none of the owner's for us (see `own.inside`)."""

    __slots__ = ()

    def __reduce__(self):
        return str, (str(self),)


def is_passage(code) -> bool:
    """Whether this code hands on to a function that is bracketed."""
    return type(code.co_filename) is _Home


def _passage(code, run):
    """Code with the arguments, the name and the place of `code` that hands everything on to `run`."""
    count, only = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames[: count + only + bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)]
    rest = list(names[count + only :])
    star = rest.pop(0) if code.co_flags & 0x04 else ""
    keywords = rest.pop(0) if code.co_flags & 0x08 else ""
    plain, named = list(names[:count]), list(names[count : count + only])
    before = plain[: code.co_posonlyargcount] + ["/"] * bool(code.co_posonlyargcount) + plain[code.co_posonlyargcount :]
    takes = before + ([f"*{star}"] if star else ["*"] * bool(named)) + named + [f"**{keywords}"] * bool(keywords)
    gives = plain + [f"*{star}"] * bool(star) + [f"{name}={name}" for name in named] + [f"**{keywords}"] * bool(keywords)
    call = f"_trainflash_run({', '.join(gives)})"
    body = f"return (yield from {call})" if code.co_flags & _GENERATOR else f"return {call}"
    made = compile(f"def passage({', '.join(takes)}): _trainflash_run = 'RUN'; {body}", _Home(code.co_filename), "exec")
    made = next(each for each in made.co_consts if isinstance(each, types.CodeType))
    more = {"co_qualname": code.co_qualname} if hasattr(code, "co_qualname") else {}
    return made.replace(
        co_consts=tuple(run if constant == "RUN" else constant for constant in made.co_consts),
        co_freevars=code.co_freevars,
        co_filename=_Home(code.co_filename),
        co_firstlineno=code.co_firstlineno,
        co_name=code.co_name,
        **more,
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
