"""The owner's classes that a loader is made of: its data set, what that holds, and what joins and chooses samples."""

from __future__ import annotations

import functools
import sys

from . import own
from .objects import attributes_of, held_in

MOST = 400  # objects that are looked at
FEW = 16  # items of one container
DEEPEST = 6


def classes_of(*roots: object):
    """[[file, 0, name]] of the owner's classes, their bases among them; None where not all that the objects hold could be looked at."""
    found: dict = {}
    seen: set = set()
    own_classes = functools.cache(_own_classes)
    todo = [(each, 0) for each in roots]
    while todo:
        value, depth = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if len(seen) > MOST:
            return None
        found.update(own_classes(type(value)))
        items = held_in(value, FEW + 1)
        if items is not None and len(items) > FEW and any([own_classes(type(item)) for _, item in items]):
            return None  # items further on may be of other classes
        inside = [item for _, item in items[:FEW]] if items is not None else list(attributes_of(value).values())
        inside = [each for each in inside if own_classes(type(each)) or _may_hold(type(each))]
        if inside and depth == DEEPEST:
            return None
        todo += [(each, depth + 1) for each in inside]
    return [[file, 0, name] for file, name in found]


def _own_classes(kind: type) -> dict:
    found = {}
    for each in type.__dict__["__mro__"].__get__(kind):
        module = sys.modules.get(each.__module__) if type(each.__module__) is str else None
        name = getattr(module, "__file__", None)
        if type(name) is str and own.inside(name) is not None:
            found[own.absolute(name), each.__qualname__] = None
    return found


def _may_hold(kind: type) -> bool:
    """A container, or a data set and a transform of a library's: no tensor, number, text, function or module."""
    return kind in (tuple, list, dict) or kind.__module__.startswith(("torch.utils.data", "torchvision", "torch_geometric", "datasets"))
