"""Whether a value, or a file, holds the state of training: the parameters of the roots that are trained, or about as much as these."""

from __future__ import annotations

import os
import sys

from ..phases import own_updates
from ..phases.loop import loop

LEAST_PART = 0.5  # of the parameters: what holds less is a sample of them, a statistic
BYTES_EACH = 2  # least size of a parameter in a file: 16 bits
MAX_ITEMS = 20_000


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


def file_holds_state(path: str) -> bool:
    """A binary file of at least half of the parameters' size."""
    size = sum(parameter.numel() for parameter in _parameters())
    try:
        return size > 0 and os.path.getsize(path) >= LEAST_PART * BYTES_EACH * size
    except OSError:
        return False


def _parameters() -> list:
    return own_updates.parameters_of(loop.trained)


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
