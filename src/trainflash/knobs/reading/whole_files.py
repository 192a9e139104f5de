"""Files that a function reads whole: which file, and the largest expressions that it alone decides."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.reading.expressions import given_to
from trainflash.knobs.reading.python_source import (
    parameter,
)


def unassigned_parameter(function: cst.FunctionDef | None, node: cst.BaseExpression) -> cst.Param | None:
    """The parameter that `node` names, where the function gives it no other value."""
    named = function is not None and isinstance(node, cst.Name) and not given_to(function, node.value)
    return parameter(function, node.value) if named else None  # type: ignore[union-attr]
