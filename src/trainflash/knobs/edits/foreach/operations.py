"""Which operations of tensors have a form for lists, and what is known of others."""

from __future__ import annotations

import libcst as cst

# Tensor operations with a list operation of the same name: https://docs.pytorch.org/docs/stable/torch.html#foreach-operations and
# torch/_C/_VariableFunctions.pyi of torch 2.1 and later.
ALONE = frozenset((
    "abs", "ceil", "cos", "erf", "exp", "expm1", "floor", "frac", "log", "log10", "log1p", "log2", "neg", "norm", "reciprocal", "round",
    "sigmoid", "sign", "sin", "sqrt", "tan", "tanh", "trunc",
))  # fmt: skip
WITH_ONE = frozenset(("add", "sub", "mul", "div", "pow", "lerp", "clamp_min", "clamp_max", "maximum", "minimum"))
WITH_TWO = frozenset(("addcmul", "addcdiv"))
SCALED = ("add", "sub")  # take `alpha`
NO_METHOD = ("maximum", "minimum", "norm")  # have no form that ends in "_"
OPERATORS: dict[type, str] = {cst.Add: "add", cst.Subtract: "sub", cst.Multiply: "mul", cst.Divide: "div", cst.Power: "pow"}
IN_PLACE: dict[type, str] = {cst.AddAssign: "add", cst.SubtractAssign: "sub", cst.MultiplyAssign: "mul", cst.DivideAssign: "div"}
GRADIENT_MODES = ("torch.no_grad", "torch.inference_mode", "torch.enable_grad")
VIEWS = ("grad", "data")  # attributes of a tensor that are tensors
ASKS = frozenset((
    "dim", "element_size", "get_device", "is_complex", "is_contiguous", "is_floating_point", "is_tensor", "item", "numel", "size", "tolist",
))  # fmt: skip
TENSOR_METHODS = ALONE | WITH_ONE | WITH_TWO | ASKS | frozenset((
    "all", "amax", "amin", "any", "bfloat16", "clamp", "clone", "contiguous", "copy", "cpu", "cumsum", "detach", "diag", "dot", "double",
    "eq", "expand", "expand_as", "fill", "flatten", "float", "ge", "gt", "half", "isfinite", "isnan", "le", "logsumexp", "lt",
    "masked_fill", "matmul", "max", "mean", "median", "min", "mm", "mv", "ne", "new_zeros", "nonzero", "permute", "prod", "repeat",
    "requires_grad", "reshape", "rsqrt", "softmax", "sort", "split", "square", "squeeze", "std", "sum", "t", "to", "topk", "trace",
    "transpose", "tril", "triu", "type", "type_as", "unsqueeze", "var", "view", "view_as", "where", "zero",
))  # fmt: skip
PLAIN = ("len", "float", "int", "abs", "min", "max")
SHORT = {"p": "params", "param": "params", "g": "grads", "x": "tensors", "v": "values"}
