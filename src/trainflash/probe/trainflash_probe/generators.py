"""Random generators: the global streams, and those that a data set or its module holds. Reading their states draws nothing."""

from __future__ import annotations

import random
import sys
from types import ModuleType

from .objects import attributes_of, held_in, is_a, is_tensor, of_class

MOST_OBJECTS = 200  # looked through for generators


def equal(a: object, b: object) -> bool:
    """Whether two states are the same."""
    if is_tensor(a):
        return bool(sys.modules["torch"].equal(a, b))
    return a == b


def states(generators: list) -> list:
    """Those of the global streams of Python, torch and, where it is imported, NumPy; then those of the generators."""
    found: list = [random.getstate(), sys.modules["torch"].get_rng_state()]
    if "numpy.random" in sys.modules:
        found.append(_legacy(sys.modules["numpy.random"]))
    return found + [_state(each) for each in generators]


def _legacy(source) -> tuple:
    numpy = sys.modules["numpy.random"]
    state = source.get_state() if source is numpy else numpy.RandomState.get_state(source)
    return (state[1].tobytes(), *state[2:])


def _state(generator):
    """By the library's own methods: a class of the owner's may have others under their names."""
    if is_a(generator, random.Random):
        return random.Random.getstate(generator)
    if is_a(generator, sys.modules["torch"].Generator):
        return sys.modules["torch"].Generator.get_state(generator)
    numpy = sys.modules["numpy.random"]
    if is_a(generator, numpy.Generator):
        return repr(numpy.Generator.bit_generator.__get__(generator).state)
    return _legacy(generator)


def _kinds() -> tuple:
    kinds: list = [random.Random, sys.modules["torch"].Generator]
    if "numpy.random" in sys.modules:
        numpy = sys.modules["numpy.random"]
        kinds += [numpy.Generator, numpy.RandomState]
    return tuple(kinds)


def held_by(dataset: object) -> list:
    """Generators among the attributes of `dataset` and of what they hold, and among the variables of its module."""
    kinds, found, seen = _kinds(), [], set()
    module = sys.modules.get(of_class(type(dataset), "__module__"))
    todo = [value for value in list(attributes_of(module).values()) if is_a(value, *kinds)] if module is not None else []
    todo.append(dataset)
    while todo and len(seen) < MOST_OBJECTS:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if is_a(each, *kinds):
            found.append(each)
        elif is_a(each, list, tuple):
            todo += [part for _, part in held_in(each) if attributes_of(part) or is_a(part, *kinds)]
        elif not is_a(each, type, ModuleType):
            values = list(attributes_of(each).values())
            todo += [part for part in values if is_a(part, *kinds, list, tuple) or attributes_of(part)]
    return found
