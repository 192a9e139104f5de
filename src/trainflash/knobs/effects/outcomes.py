"""What becomes of what a call returns: the variables that hold it, and those that something worked out from it goes into."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.reading.python_source import ASSIGNS, PythonFile, descendants, dotted, targets_of


def held(file: PythonFile, call: cst.CSTNode) -> set[str]:
    """Names and attributes that the statement around `call` assigns, where it assigns anything."""
    for up in file.ancestors(call):
        if isinstance(up, (*ASSIGNS, cst.NamedExpr)):
            return _names(up)
        if isinstance(up, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            return set()
    return set()


def derived(around: cst.CSTNode, names: set[str]) -> set[str]:
    """`names`, and all that is assigned something that mentions one of them in the same function."""
    found, statements = set(names), list(descendants(around, ASSIGNS))
    while True:
        more = {name for each in statements if each.value is not None and mentions(each.value, found) for name in _names(each)}  # type: ignore[attr-defined]
        if more <= found:
            return found
        found |= more


def mentions(node: cst.CSTNode, names: set[str]) -> bool:
    """Whether a part of `node` is one of `names`."""
    return any(dotted(each) in names for each in descendants(node, (cst.Name, cst.Attribute)))  # type: ignore[arg-type]


def _names(statement: cst.CSTNode) -> set[str]:
    return {
        name
        for target in targets_of(statement)
        for each in (target, *descendants(target, (cst.Name, cst.Attribute)))
        if (name := dotted(each)) is not None  # type: ignore[arg-type]
    } - {"self"}
