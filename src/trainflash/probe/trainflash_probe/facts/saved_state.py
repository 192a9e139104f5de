"""Whether a value, or a file, holds the state of training: the parameters of the roots that are trained, or about as much as these."""

from __future__ import annotations

import collections
import math
import os
import sys

from ..phases import own_updates
from ..phases.loop import loop

LEAST_PART = 0.5  # of the parameters: what holds less is a sample of them, a statistic
BYTES_EACH = 2  # least size of a parameter in a file: 16 bits
MAX_ITEMS = 20_000

_leaves: list = []
_parts: dict = {}  # place -> [step, shapes of parameters that are not written yet, elements that are, of so many]


def holds_state(value: object) -> bool:
    """The model or optimizer itself, tensors or arrays with the shapes of at least half of the parameters, or bytes of their size."""
    parameters = _parameters()
    size = sum(parameter.numel() for parameter in parameters)
    if not size:
        return False
    shapes, elements, data = _contents(value)
    if shapes is None or data >= LEAST_PART * BYTES_EACH * size:
        return True
    if elements < LEAST_PART * size:
        return False
    found = sum(parameter.numel() for parameter in parameters if tuple(parameter.shape) in shapes or (size,) in shapes)
    return found >= LEAST_PART * size


def adds_up_to_state(place: tuple, value: object) -> bool:
    """Whether what a place writes one by one in a step has the shapes of at least half of the parameters, dimensions of one aside."""
    shapes, _, _ = _contents(value)
    entry = _parts.get(place)
    if entry is None or entry[0] != loop.steps:
        left = collections.Counter(_bare(parameter.shape) for parameter in _parameters())
        entry = _parts[place] = [loop.steps, left, 0, sum(math.prod(shape) * count for shape, count in left.items())]
    for shape in map(_bare, shapes or ()):
        if entry[1][shape] > 0:
            entry[1][shape] -= 1
            entry[2] += math.prod(shape)
    return entry[2] >= LEAST_PART * entry[3] > 0


def _bare(shape) -> tuple:
    return tuple([length for length in shape if length != 1])


def file_holds_state(path: str) -> bool:
    """A binary file of at least half of the parameters' size."""
    size = sum(parameter.numel() for parameter in _parameters())
    try:
        return size > 0 and os.path.getsize(path) >= LEAST_PART * BYTES_EACH * size
    except OSError:
        return False


class _Leaf:
    """The shape of what a backward gave a gradient for."""

    __slots__ = ("shape",)

    def __init__(self, shape: tuple) -> None:
        self.shape = shape

    def numel(self) -> int:
        return math.prod(self.shape)


def backward_begins(tensors: tuple) -> bool:
    """In a network of functions alone, what its backward gives gradients for are the parameters. Whether that is known now."""
    if not loop.trained and not _leaves:
        _leaves.extend(_Leaf(tuple(leaf.shape)) for leaf in own_updates.leaves_of(tensors))
    return bool(loop.trained or _leaves)


def _parameters() -> list:
    return own_updates.parameters_of(loop.trained) or _leaves


def _contents(value: object):
    """(shapes of all tensors and arrays, or None where a model or optimizer is among them; their elements; bytes)."""
    torch = sys.modules["torch"]
    shapes, elements, data = set(), 0, 0
    todo, seen = [value], 0
    while todo and seen < MAX_ITEMS:
        item = todo.pop()
        seen += 1
        if isinstance(item, (torch.nn.Module, torch.optim.Optimizer)):
            return None, 0, 0
        if isinstance(item, dict):
            todo += item.values()
        elif isinstance(item, (list, tuple)):
            todo += item[:MAX_ITEMS]
        elif isinstance(item, (bytes, bytearray, memoryview)):
            data += len(item)
        elif hasattr(item, "shape") and hasattr(item, "dtype"):
            shape = tuple(item.shape)
            shapes.add(shape)
            count = 1
            for length in shape:
                count *= length
            elements += count
    return shapes, elements, data
