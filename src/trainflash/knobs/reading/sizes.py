"""Whose size an expression is: `len(x)`, `x.shape[0]`, `x.size(-1)`, `x.size(dim=1)`, `x.size()[1]`."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.reading.expressions import literal
from trainflash.knobs.reading.python_source import dotted, keyword, positional

SIZES = ("shape", "size")


def size_of(node: cst.CSTNode | None) -> tuple[cst.BaseExpression, int] | None:
    """What is measured, and along which dimension; None for anything else."""
    if isinstance(node, cst.Call) and dotted(node.func) == "len" and len(node.args) == 1:
        return node.args[0].value, 0
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "size":
        given = positional(node, 0) or keyword(node, "dim")
        dim = literal(given.value) if given is not None else None
        return (node.func.value, dim) if isinstance(dim, int) else None
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        whole, dim = sizes_of(node.value), literal(node.slice[0].slice.value)
        return (whole, dim) if whole is not None and isinstance(dim, int) else None
    return None


def sizes_of(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What all sizes are asked of: `x` of `x.shape` and `x.size()`."""
    shape = node.func if isinstance(node, cst.Call) and not node.args else node
    called = isinstance(node, cst.Call)
    return shape.value if isinstance(shape, cst.Attribute) and shape.attr.value == SIZES[called] else None
