"""Averages of the weights that a program keeps beside what it trains: they show nowhere before they are evaluated or saved.

They are looked for among all that Python's collector knows: a network, or a list or mapping of tensors, of the shapes of the trained
parameters in their order, that no optimizer holds. A snapshot of the weights looks the same and does no harm: where the training is the
same, it is the same on both sides. To look through all of that takes a tenth of a second: where nothing is found it is done ever more
seldom, by the number of looks, so that both sides do it at the same ones.
"""

from __future__ import annotations

import gc
import weakref

from ..parts import parameters_in
from . import tensors

MOST = 3
MOST_VALUES = 50_000_000
LEAST_TENSORS = 2

_known: list = []  # lists of weak references to the tensors of an average
_looks = 0  # that found none


def weigh(parameters_, optimizers):
    """`[norm, sketch]` of each average that is found; `parameters_` are those that are trained, in order."""
    if len(parameters_) < LEAST_TENSORS or sum(int(each.numel()) for each in parameters_) > MOST_VALUES:
        return []
    alive = [[reference() for reference in known] for known in _known]
    if any(tensor is None for kept in alive for tensor in kept) or (not alive and _is_due()):
        alive = _found(parameters_, optimizers)
        _known[:] = [[weakref.ref(tensor) for tensor in kept] for kept in alive]
    return [[sum(map(tensors.squares, kept)) ** 0.5, tensors.sketch(kept)] for kept in alive]


def _is_due() -> bool:
    """Whether a look that has found nothing so far searches again: the 1st, 2nd, 4th, 8th."""
    global _looks
    _looks += 1
    return not _looks & (_looks - 1)


def _found(parameters_, optimizers):
    torch = tensors.torch_module()
    shapes = [tuple(each.shape) for each in parameters_]
    taken = {id(each) for each in parameters_} | {id(each.grad) for each in parameters_ if each.grad is not None}
    kept = [getattr(optimizer, "state", None) for optimizer in optimizers]
    states = [state for each in kept if isinstance(each, dict) for state in each.values() if isinstance(state, dict)]
    held = {id(value) for state in states for value in state.values()}
    found: list = []
    for each in gc.get_objects():
        kind = type(each)
        if kind is list or kind is tuple:
            values = each
        elif kind is dict:
            values = each.values()
        elif issubclass(kind, torch.nn.Module):  # an object of the program's is not asked what it is, nor what it holds
            values = list(parameters_in(each))
        else:
            continue
        if len(values) != len(shapes):
            continue
        values = list(values)
        if not all(type(value) in (torch.Tensor, torch.nn.Parameter) for value in values):
            continue
        ids = [id(value) for value in values]
        if not taken.isdisjoint(ids) or not held.isdisjoint(ids) or [tuple(value.shape) for value in values] != shapes:
            continue
        if all(value.is_floating_point() and value.device.type == "cpu" for value in values) and ids not in [known for known, _ in found]:
            found.append((ids, values))
            if len(found) == MOST:
                break
    return [values for _, values in found]
