"""`losses.append(loss.item())` in every step: the list keeps tensors, and what reads it now and then makes them numbers."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits.cadence.now_and_then import guarded_in
from trainflash.knobs.reading.expressions import assigned, is_name, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted
from trainflash.knobs.splices import Splice

READERS = ("sum", "max", "min", "sorted", "print", "math.fsum", "torch.tensor")
MODULES = ("numpy.", "statistics.")
LEAVES = ("len", "clear")  # what needs no numbers
EACH = "each"


def list_of(file: PythonFile, call: cst.Call) -> cst.Name | None:
    """The list of a statement `name.append(call)`; None where `call` is used in another way."""
    arg = file.parent(call)
    outer = file.parent(arg) if isinstance(arg, cst.Arg) else None
    appends = isinstance(outer, cst.Call) and isinstance(outer.func, cst.Attribute) and outer.func.attr.value == "append"
    if not appends or len(outer.args) != 1 or not isinstance(file.parent(outer), cst.Expr):  # type: ignore[union-attr]
        return None
    name = outer.func.value  # type: ignore[union-attr]
    return name if isinstance(name, cst.Name) else None


def as_numbers(file: PythonFile, kept: cst.Name, loop: cst.For | cst.While) -> list[Splice]:
    """Every reader of the list with numbers in place of tensors. Raises `UsageError` where one reads in every step, or keeps it."""
    function = file.function_around(loop)
    scope = function.body if function is not None else file.module
    shared = {item.name.value for node in file.nodes if isinstance(node, (cst.Global, cst.Nonlocal)) for item in node.names}
    if kept.value in shared or (
        function is not None and any(each.name.value == kept.value for each in descendants(function.params, cst.Param))
    ):
        raise refuse(f"{file.location(kept)}: {kept.value} is shared with other functions")
    splices: list[Splice] = []
    begins = False
    for node in descendants(scope, cst.Name):
        if node.value == EACH and is_name(file, node):
            raise refuse(f"{file.location(node)}: the name {EACH} means something else there")
        if node.value != kept.value or node is kept or not is_name(file, node):
            continue
        value = assigned(file, node)
        if value is not None:
            if not isinstance(value, cst.List) or value.elements:
                raise refuse(f"{file.location(node)}: {kept.value} does not begin as an empty list")
            begins = True
            continue
        inner = next((up for up in file.ancestors(node) if isinstance(up, (cst.FunctionDef, cst.Lambda))), None)
        if inner is not function:
            raise refuse(f"{file.location(node)}: {kept.value} is read in a function of its own")
        splices += _numbers(file, node, loop)
    if not begins or not splices:
        raise refuse(f"{file.location(kept)}: who reads {kept.value} is not known")
    return splices


def _numbers(file: PythonFile, node: cst.Name, loop: cst.For | cst.While) -> list[Splice]:
    """The reader `node`, or the part of the list that it takes, as numbers; nothing where it needs none."""
    read: cst.BaseExpression = node
    up = file.parent(node)
    call = file.parent(up) if isinstance(up, (cst.Arg, cst.Attribute)) else None
    if isinstance(call, cst.Call) and (dotted(call.func) == LEAVES[0] or (call.func is up and up.attr.value in LEAVES)):  # type: ignore[union-attr]
        return []
    if isinstance(up, cst.Subscript) and up.value is node and len(up.slice) == 1:
        read, up = up, file.parent(up)
    if file.inside(node, loop) and not guarded_in(file, node, loop):
        raise refuse(f"{file.location(node)}: {node.value} is read in every step")
    text, (start, end) = file.text(read), file.span(read)
    if isinstance(read, cst.Subscript) and not isinstance(read.slice[0].slice, cst.Slice):
        spelled = isinstance(up, cst.FormattedStringExpression) and up.equal is not None
        if spelled or isinstance(up, (cst.AssignTarget, cst.AugAssign, cst.Del)):
            raise refuse(f"{file.location(node)}: `{text}` is not only read")
        return [Splice(file.path, start, end, f"float({text})")]
    outer = file.parent(up) if isinstance(up, cst.Arg) else None
    full = (file.full_name(outer.func) or "") if isinstance(outer, cst.Call) else ""
    if not isinstance(up, cst.Return) and full not in READERS and not full.startswith(MODULES):
        raise refuse(f"{file.location(node)}: `{file.text(up or node)}` may keep {node.value} or need its tensors")
    return [Splice(file.path, start, end, f"[float({EACH}) for {EACH} in {text}]")]
