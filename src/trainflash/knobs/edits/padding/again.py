"""Padding that comes on top of a batch that is as wide as its longest sample, or of its first sample: it can go as it stands."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import literal, same
from trainflash.knobs.reading.python_source import PythonFile
from trainflash.knobs.training import samples

FILLERS = {"zeros", "ones", "full", "new_zeros", "new_ones", "new_full", "repeat"}  # calls that make what is added to a sample
FIXED = (cst.Name, cst.Attribute, cst.Integer)


def pads_one(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether `node` pads a single sample: `WIDTH - len(x)` as a count of what is added, or a tokenizer asked for its full length."""
    if isinstance(node, cst.Arg):
        word = {"padding": "max_length", "pad_to_max_length": True}.get(node.keyword.value if node.keyword is not None else "")
        return word is not None and same(literal(node.value), word)
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Subtract) or not isinstance(node.left, FIXED):
        return False
    if samples.measured(file, node.right)[1] is None and not isinstance(node.right, cst.Name):
        return False
    top, more = added(file, node)
    up = file.parent(top)
    if more < 0 or (isinstance(up, cst.BinaryOperation) and not isinstance(up.operator, cst.Multiply)):
        return False
    stored = isinstance(up, cst.Assign) and any("pad" in file.text(target.target).lower() for target in up.targets)
    repeated = isinstance(up, cst.BinaryOperation) and isinstance(up.operator, cst.Multiply)
    calls = (callees.called_name(around).lower() for around in file.ancestors(node) if isinstance(around, cst.Call))
    return stored or repeated or any("pad" in name or name in FILLERS for name in calls)


def added(file: PythonFile, node: cst.BaseExpression) -> tuple[cst.BaseExpression, int]:
    """`WIDTH - len(x)` with what is taken off it for tokens that stand around the sample: 2 for `WIDTH - len(x) - 2`."""
    more = 0
    up = file.parent(node)
    while isinstance(up, cst.BinaryOperation) and up.left is node and isinstance(up.right, cst.Integer):
        if not isinstance(up.operator, (cst.Add, cst.Subtract)):
            break
        more += literal(up.right) if isinstance(up.operator, cst.Subtract) else -literal(up.right)
        node, up = up, file.parent(up)
    return node, more
