"""Tensors and arrays in what programs pass around: nested tuples, lists, mappings and dataclasses. None of the program's code is run."""

from __future__ import annotations

import ctypes
import sys

from .objects import MOST, held_in, is_array, is_tensor, of_class
from .parts import parameters_in

_STAND_INS = ("torch._subclasses.fake_tensor", "torch._subclasses.functional_tensor")


def plain(tensor):
    """The tensor inside the wrappers of torch.func."""
    _functorch = sys.modules["torch"]._C._functorch
    while _functorch.is_functorch_wrapped_tensor(tensor):
        tensor = _functorch.get_unwrapped(tensor)
    return tensor


def stands_in(value: object) -> bool:
    """Whether it is one of torch's tensors, or modes, that only reckon with shapes: such a tensor says that it lies on the host, and has no
    values there."""
    return type(value).__module__ in _STAND_INS


def memory_of(tensor):
    """The memory of a dense tensor on the host as an array, valid as long as the tensor lives; raises where there is none.

    `Tensor.numpy()` is not used: it marks the storage as one that can't be resized any more, and FSDP and `resize_` refuse it then.
    """
    kind = sys.modules["numpy"].dtype(str(tensor.dtype).partition(".")[2])  # TypeError for those that NumPy has not
    if stands_in(tensor) or tensor.is_conj() or tensor.is_neg():
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
    return not any(of_class(type(parameter), "materialize") is not None for parameter in parameters_in(module))


def named_tensors(value: object, name: str = "", depth: int = 0, wanted=is_tensor) -> list:
    """(lower-case key, tensor) in nested containers, at most 32; the name of an unnamed one is "". `wanted`: what is looked for instead."""
    if wanted(value):
        return [(name, value)]
    found: list = []
    for key, item in (held_in(value) or ()) if depth <= 3 else ():
        found += named_tensors(item, key.lower() or name, depth + 1, wanted)
        if len(found) >= MOST:
            break
    return found[:MOST]


def tensors_in(value: object) -> list:
    """The tensors alone, of any value of the program's."""
    return [tensor for _, tensor in named_tensors(value)]


def arrays_in(value: object) -> list:
    """The arrays alone, of any value of the program's."""
    return [array for _, array in named_tensors(value, wanted=is_array)]


def needs_grad(value: object) -> bool:
    """Whether a gradient is wanted of one of its tensors. A class of the program's own is not asked."""
    with sys.modules["torch"]._C.DisableTorchFunctionSubclass():
        return any(tensor.requires_grad for tensor in tensors_in(value))
