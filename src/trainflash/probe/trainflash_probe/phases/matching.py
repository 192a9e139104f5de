"""Whether a value that a call gave is an input of the model: the very tensor or list, its memory, its kind, or only as many numbers.

Between a function that makes data and the model the loop may cast, permute or flatten, or make a tensor of lists. So the ways are tried one
after the other, from the one that cannot be wrong to the one that can. No value of a tensor or an array is read.
"""

from __future__ import annotations

from ..nested import arrays_in, stands_in, tensors_in
from ..objects import held_in, is_array, is_tensor

LEAST_NUMBERS = 32  # of an input that is told by their count; own: fewer may be anything
DEEPEST = 6  # of nested lists
_NUMBERS = (int, float, bool)
_TEXTS = (str, bytes, list, tuple)


def data_in(value: object) -> list:
    """Tensors and arrays; what part of the model made is no data."""
    return [tensor for tensor in tensors_in(value) if not tensor.requires_grad] + arrays_in(value)


def same_memory(value: object, given) -> bool:
    """`torch.from_numpy` makes a tensor in the memory of its array."""
    return any([_shares(made, given) for made in data_in(value)])


def same_kind(value: object, given) -> bool:
    """A copy may have another type than the array that it was made of."""
    return any([_alike(made, given) for made in data_in(value)])


def as_many(value: object, given) -> bool:
    """Another layout or another type of it, or lists that it was made of."""
    if given.requires_grad or given.dim() < 2 or given.numel() < LEAST_NUMBERS:
        return False
    return given.numel() in counts_in(value)


def given_as_they_are(values: tuple) -> list:
    """Of a forward's arguments lists and arrays of many numbers, and lists of texts: the network makes its own tensors of them."""
    return [value for value in values if (type(value) in (list, tuple) or is_array(value)) and is_batch(value)]


def holds(value: object, given) -> bool:
    """Whether a value is that very list or array, or has it as an item."""
    return value is given or any([item is given for item in _held(value)])


def is_batch(value: object) -> bool:
    """Whether it may be a batch, whatever becomes of it: many numbers that are no part of the model, or a list of texts or of lists."""
    if max(counts_in(value), default=0) >= LEAST_NUMBERS:
        return True
    return any([type(each) in (list, tuple) and len(each) > 1 and type(each[0]) in _TEXTS for each in (value, *_held(value))])


def counts_in(value: object, depth: int = 0) -> set:
    """How many numbers each tensor, array and regular nesting of lists in `value` holds; a part of the model's graph holds none."""
    if is_tensor(value):
        return set() if value.requires_grad else {value.numel()}
    if is_array(value):
        return {value.size}
    found = {_listed(value)} - {0}
    for item in _held(value) if depth < 2 else ():
        if type(item) not in _NUMBERS:
            found |= counts_in(item, depth + 1)
    return found


def _held(value: object) -> list:
    return [item for _, item in held_in(value) or ()]


def _listed(value: object) -> int:
    """Numbers in lists of lists of equal length; 0 for anything else."""
    count = 1
    for _ in range(DEEPEST):
        if type(value) not in (list, tuple):
            break
        if not value or (
            type(value[0]) in (list, tuple) and len({len(item) if type(item) is type(value[0]) else -1 for item in value}) > 1
        ):
            return 0
        count, value = count * len(value), value[0]
    if type(value) in _NUMBERS:
        return count
    if is_tensor(value):
        return 0 if value.requires_grad else count * value.numel()
    return count * value.size if is_array(value) else 0


def _shares(made, given) -> bool:
    if is_array(made):
        return given.device.type == "cpu" and made.__array_interface__["data"][0] == memory_of(given) != 0
    return made is given or (made.device == given.device and memory_of(made) == memory_of(given) != 0)


def memory_of(tensor) -> int:
    """Address of the values; 0 for a tensor that has none of its own."""
    try:
        if stands_in(tensor):
            return 0
        return (tensor._values() if tensor.is_sparse else tensor).untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0  # another sparse layout, or a wrapper of torch.func


def _alike(made, given) -> bool:
    if is_array(made):
        return tuple(made.shape) == tuple(given.shape) and given.dim() > 1
    return made.shape == given.shape and made.dtype == given.dtype and made.dim() > 1
