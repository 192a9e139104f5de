"""Tensors and arrays in what programs pass around: nested tuples, lists and mappings."""

from __future__ import annotations

import ctypes
import sys
from collections import UserDict

MOST = 32  # tensors of one value
_IN_MEMORY = (dict, UserDict)


def is_tensor(value: object) -> bool:
    """A tensor of torch's, without torch."""
    return hasattr(value, "data_ptr") and hasattr(value, "is_floating_point")


def plain(tensor):
    """The tensor inside the wrappers of torch.func."""
    _functorch = sys.modules["torch"]._C._functorch
    while _functorch.is_functorch_wrapped_tensor(tensor):
        tensor = _functorch.get_unwrapped(tensor)
    return tensor


def is_array(value: object) -> bool:
    """An array of NumPy's or of a kind, without NumPy."""
    return hasattr(value, "__array_interface__") and hasattr(value, "shape") and not is_tensor(value)


def memory_of(tensor):
    """The memory of a dense tensor on the host as an array, valid as long as the tensor lives; raises where there is none.

    `Tensor.numpy()` is not used: it marks the storage as one that can't be resized any more, and FSDP and `resize_` refuse it then.
    """
    kind = sys.modules["numpy"].dtype(str(tensor.dtype).partition(".")[2])  # TypeError for those that NumPy has not
    if tensor.is_conj() or tensor.is_neg():
        raise ValueError("its values are not what lies in memory")
    shape, strides = tuple(tensor.shape), tuple([kind.itemsize * stride for stride in tensor.stride()])
    if not tensor.numel():
        return sys.modules["numpy"].empty(shape, kind)
    size = kind.itemsize + sum([(count - 1) * strides[i] for i, count in enumerate(shape)])
    if tensor.storage_offset() * kind.itemsize + size > tensor.untyped_storage().nbytes():
        raise ValueError("its memory was freed")
    buffer = (ctypes.c_char * size).from_address(tensor.data_ptr())
    return sys.modules["numpy"].ndarray(shape, kind, buffer, 0, strides)


def is_complete(module: object) -> bool:
    """Whether all parameters of a network have their shapes: those of lazy modules get them in the first forward."""
    return not any(hasattr(parameter, "materialize") for parameter in module.parameters())


def named_tensors(value: object, name: str = "", depth: int = 0, in_memory: bool = False, wanted=is_tensor) -> list:
    """(lower-case key, tensor) in nested tuples, lists and mappings, at most 32; the name of an unnamed one is "".

    With `in_memory`, of mappings only those are looked into that read no file when they are asked for a value. `wanted` tells what to
    look for instead of tensors.
    """
    if wanted(value):
        return [(name, value)]
    if depth > 3:
        return []
    if isinstance(value, _IN_MEMORY) or (not in_memory and hasattr(value, "keys") and hasattr(value, "__getitem__")):
        pairs = [(str(key).lower(), value[key]) for key in list(value.keys())[:MOST]]
    elif isinstance(value, (tuple, list)):
        names = getattr(value, "_fields", None) or [name] * len(value)
        pairs = [(str(names[index]).lower(), item) for index, item in enumerate(value[:MOST])]
    else:
        return []
    found: list = []
    for key, item in pairs:
        found += named_tensors(item, key, depth + 1, in_memory, wanted)
        if len(found) >= MOST:
            break
    return found[:MOST]


def tensors_in(value: object) -> list:
    """The tensors alone, of any value of the program's."""
    return [tensor for _, tensor in named_tensors(value, in_memory=True)]


def arrays_in(value: object) -> list:
    """The arrays alone, of any value of the program's."""
    return [array for _, array in named_tensors(value, in_memory=True, wanted=is_array)]
