"""What a turn takes by a mask and reduces to a number, as `x[mask].max()`: of all rows at once by filling, `x.masked_fill(~mask, …)`.

How many elements a mask takes is another number in each row, which torch cannot map. `view_as` lets a mask with fewer dimensions fail,
which would fill other elements than it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from trainflash.knobs.edits.mapped.over import Over
from trainflash.knobs.reading.expressions import given_to, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants

FILLS = {"max": 'float("-inf")', "min": 'float("inf")', "sum": "0", "mean": "0"}
JOINS = (cst.BitAnd, cst.BitOr, cst.BitXor)
LOGICAL = ("logical_and", "logical_or", "logical_not", "isin", "isnan", "isfinite", "bool")
DEEPEST = 4  # own: names between a mask and the comparison that makes it


def filled(file: PythonFile, parts: Sequence[cst.CSTNode], rows: Over) -> Iterator[tuple[int, int, str]]:
    """Bytes of `parts` and what stands there instead. Raises `UsageError` where a mask takes elements that are not reduced at once."""
    for part in parts:
        for node in descendants(part, cst.Subscript):
            index = node.slice[0].slice if len(node.slice) == 1 else None  # type: ignore[attr-defined]
            mask = index.value if isinstance(index, cst.Index) else None
            if mask is None or not _is_mask(parts, mask, 0):
                continue
            call = _reduced(file, node)  # type: ignore[arg-type]
            if call is None or not isinstance(node.value, (cst.Name, cst.Attribute, cst.Subscript)):  # type: ignore[attr-defined]
                raise refuse(f"{file.location(node)}: `{short(file.text(node))}` takes another number of elements in each row")
            way = call.func.attr.value  # type: ignore[union-attr]
            text, whole = rows.text(file, mask), rows.text(file, node.value)  # type: ignore[attr-defined]
            wrapped = text if isinstance(mask, (cst.Name, cst.Call)) else f"({text})"
            fill = f".masked_fill(~{wrapped}.view_as({whole}), {FILLS[way]})"
            yield file.outer_span(node.value)[1], file.span(node)[1], fill  # type: ignore[attr-defined]
            if way == "mean":
                start, end = file.span(call)
                yield start, start, "("
                yield file.span(node)[1], end, f".sum() / {wrapped}.sum())"


def _reduced(file: PythonFile, node: cst.Subscript) -> cst.Call | None:
    """The call of a method without arguments that makes one number of what is taken."""
    up = file.parent(node)
    call = file.parent(up) if isinstance(up, cst.Attribute) and up.value is node and up.attr.value in FILLS else None
    return call if isinstance(call, cst.Call) and call.func is up and not call.args else None


def _is_mask(parts: Sequence[cst.CSTNode], node: cst.BaseExpression, depth: int) -> bool:
    """Whether a turn makes `node` by a comparison, or of masks."""
    if depth > DEEPEST:
        return False
    if isinstance(node, cst.Comparison):
        return True
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.BitInvert) and _is_mask(parts, node.expression, depth + 1)
    if isinstance(node, cst.BinaryOperation):
        return isinstance(node.operator, JOINS) and all(_is_mask(parts, side, depth + 1) for side in (node.left, node.right))
    if isinstance(node, cst.Call):
        name = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        return name in LOGICAL or (name == "clone" and _is_mask(parts, node.func.value, depth + 1))  # type: ignore[union-attr]
    made = [value for part in parts for value in given_to(part, node.value)] if isinstance(node, cst.Name) else []
    return bool(made) and all(_is_mask(parts, value, depth + 1) for value in made)
