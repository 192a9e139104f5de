"""Bytes that an operator of a trace moves at least, from the shapes and formats of its inputs: what a trace says of a call.

What it makes follows for operators that compute element by element, reduce or copy; of the others nothing is said.
"""

from __future__ import annotations

import json

from trainflash.schema.operator_work import moved, size
from trainflash.schema.sites import Operand

_FORMATS = {
    "float": "float32",
    "double": "float64",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "long int": "int64",
    "long": "int64",
    "int": "int32",
    "short int": "int16",
    "signed char": "int8",
    "unsigned char": "uint8",
    "bool": "bool",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
}
_LISTS = ("TensorList", "GenericList", "TensorList?")
_FILLED = frozenset({"fill_", "zero_"})
_COPIED = frozenset({"copy_"})
_REDUCED = frozenset(
    ["sum", "mean", "max", "min", "amax", "amin", "prod", "any", "all", "var", "std", "norm", "linalg_vector_norm", "argmax", "argmin"]
)
_COMPARED = frozenset(["eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "logical_not", "logical_and", "logical_or", "signbit"])
_ALONE = """
exp log log2 log1p expm1 sqrt rsqrt neg abs sign reciprocal sigmoid tanh sin cos erf floor ceil round clamp_min clamp_max relu leaky_relu
gelu silu hardtanh elu softplus threshold bitwise_not
"""
_UNARY = frozenset(_ALONE.split())  # a second tensor of theirs is where they write
_ELEMENTS = """
add sub rsub mul div pow clamp maximum minimum where masked_fill lerp addcmul addcdiv bitwise_and bitwise_or threshold_backward
gelu_backward silu_backward sigmoid_backward tanh_backward leaky_relu_backward elu_backward _softmax _log_softmax _softmax_backward_data
_log_softmax_backward_data native_layer_norm native_layer_norm_backward native_group_norm native_batch_norm native_batch_norm_backward
cudnn_batch_norm miopen_batch_norm native_dropout_backward
"""
_SAME = _UNARY | frozenset(_ELEMENTS.split())  # what they make is as large as the largest that they are given


def moved_bytes(name: str, input_dims: str, input_types: str) -> int | None:
    """Bytes that an operator of this name and these inputs (JSON, as the tracer writes them) reads and writes at least; None: not known."""
    bare = name.removeprefix("aten::")
    given = _tensors(input_dims, input_types)
    if not given:
        return None
    if bare in _FILLED:
        return size(given[0])
    if bare in _COPIED:
        return moved("copy", given[1:2], given[:1])
    plain = bare if bare in _SAME else bare.removesuffix("_")
    given = given[:1] if plain in _UNARY else given
    largest = max(given, key=size)
    if plain in _REDUCED:
        return moved(plain, given, (Operand((), largest.dtype),))
    if plain in _COMPARED:
        return moved(plain, given, (Operand(largest.shape, "bool"),))
    return moved(plain, given, (largest,)) if plain in _SAME else None


def _tensors(input_dims: str, input_types: str) -> tuple[Operand, ...] | None:
    """Tensors among the inputs; None where some of them cannot be told."""
    try:
        shapes, formats = json.loads(input_dims), json.loads(input_types)
    except ValueError:
        return None
    if (
        not isinstance(shapes, list)
        or not isinstance(formats, list)
        or len(shapes) != len(formats)
        or any(map(_LISTS.__contains__, formats))
    ):
        return None
    tensors = [(shape, _FORMATS[kind]) for shape, kind in zip(shapes, formats, strict=True) if kind in _FORMATS]
    if not all(isinstance(shape, list) and all(isinstance(extent, int) for extent in shape) for shape, _ in tensors):
        return None
    return tuple(Operand(tuple(shape), kind) for shape, kind in tensors)
