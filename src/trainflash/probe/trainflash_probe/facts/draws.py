"""Whether making a batch draws random numbers: from a global stream, or from a generator that the dataset or its module holds.

States are compared before and after a fetch; reading them draws nothing.
"""

from __future__ import annotations

import random
import sys
from types import ModuleType

from ..guard import swallow
from ..objects import attributes_of, held_in, is_a, is_tensor, of_class
from ..phases.loop import loop
from ..writer import fact

LOOKS = 16  # first fetches of one loader in one process
MOST_OBJECTS = 200  # looked through for generators


class Draws:
    """What is known of one loader in this process: `known` is None before the first look."""

    def __init__(self, loader: int) -> None:
        self.loader = loader
        self.known: bool | None = None
        self._looks = 0

    def before(self, dataset: object):
        """The states in front of a fetch; None where no look is needed."""
        if self.known or self._looks >= LOOKS:
            return None
        self._looks += 1
        try:
            generators = _generators(dataset)
            with loop.unseen():
                return generators, _states(generators)
        except Exception as error:
            swallow("random streams", error)
            return None

    def after(self, before) -> None:
        """Compare with the states behind the fetch, and write down what is new."""
        if before is None:
            return
        try:
            generators, states = before
            with loop.unseen():
                drew = not all(map(_equal, states, _states(generators)))
            if drew or self.known is None:
                self.known = drew
                fact("draws", loader=self.loader, draws=drew)
        except Exception as error:
            swallow("random streams", error)


def _equal(a: object, b: object) -> bool:
    if is_tensor(a):
        return bool(sys.modules["torch"].equal(a, b))
    return a == b


def _states(generators: list) -> list:
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


def _generators(dataset: object) -> list:
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
