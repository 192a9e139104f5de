"""Padding to a round width, so that batches have few shapes, where the program itself makes the batch as wide as its longest sample."""

from __future__ import annotations

from typing import Any

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.padding import read_columns
from trainflash.knobs.edits.padding.longest import MAKERS
from trainflash.knobs.kinds import RoundedWidth
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import given_to, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import masked

NEW = {"new_zeros", "new_ones", "new_full", "new_empty"}  # methods of a tensor that make another
PLACES = ("torch.arange", "numpy.arange")  # of the mask, which is as wide
PADS = ("numpy.pad", "torch.nn.functional.pad")
SIZES = {"shape", "size"}


def rounded_width(edit: RoundedWidth, scene: Scene) -> tuple[Target, ...]:
    """The width of the rows that the function of the finding's line makes. Raises `UsageError` where it is used for anything else."""
    file, place = scene.source("makes the batches")
    function = file.function_at(place)
    if function is None:
        raise refuse(f"{place}: no function makes the batches there")
    masked.leaves_out(scene.project)
    reasons: list[UsageError] = []
    for where, each in callees.reached(scene.project, [(file, function)]):
        for assign in descendants(each.body, cst.Assign):
            if _is_longest(where, each, assign):  # type: ignore[arg-type]
                try:
                    return (_target(scene, where, each, assign),)  # type: ignore[arg-type]
                except UsageError as bad:
                    reasons.append(bad)
    raise reasons[0] if reasons else refuse(f"{place}: no width is the longest of a batch's samples (`width = max(len(x) for x in batch)`)")


def _is_longest(file: PythonFile, function: cst.FunctionDef, assign: cst.Assign) -> bool:
    """Whether one variable is given the largest of some lengths."""
    call = assign.value
    if len(assign.targets) != 1 or not isinstance(assign.targets[0].target, cst.Name) or not isinstance(call, cst.Call):
        return False
    if file.full_name(call.func) != "max" or len(call.args) != 1 or call.args[0].keyword is not None or call.args[0].star:
        return False
    named = call.args[0].value
    return any(_measures(value) for value in (given_to(function, named.value) if isinstance(named, cst.Name) else [named]))


def _measures(value: cst.BaseExpression) -> bool:
    asked = any(isinstance(name, cst.Name) and name.value == "len" for name in descendants(value, cst.Name))
    return asked or any(node.attr.value in SIZES for node in descendants(value, cst.Attribute))  # type: ignore[attr-defined]


def _target(scene: Scene, file: PythonFile, function: cst.FunctionDef, assign: cst.Assign) -> Target:
    width, here = assign.targets[0].target.value, file.location(assign)  # type: ignore[attr-defined]
    if len(given_to(function, width)) != 1:
        raise refuse(f"{here}: `{width}` is given more than one value")
    makes, places = False, set()
    for node in descendants(function.body, cst.Name):
        if node.value != width or node is assign.targets[0].target:  # type: ignore[attr-defined]
            continue
        maker = next((up for up in file.ancestors(node) if isinstance(up, cst.Call)), None)
        name = file.full_name(maker.func) if maker is not None else None
        counts = maker is not None and name in PLACES and len(maker.args) == 1
        made = maker is not None and (name in MAKERS or callees.method_name(maker) in NEW)
        left = file.parent(node)
        fills = isinstance(left, cst.BinaryOperation) and isinstance(left.operator, cst.Subtract) and left.left is node
        makes = makes or made or (fills and name in PADS)
        places |= _place(maker, node) if made else set()
        if not made and not fills and not counts:
            line = file.statement(node)
            raise refuse(f"{file.location(node)}: `{short(file.text(line or node))}` needs the width as it is")
    if not makes:
        raise refuse(f"{here}: no rows of the width `{width}` are made")
    read_columns.none(scene.project, places)
    tables = list(read_columns.room(scene.project))
    start, end = file.span(assign.value)
    text = file.text(assign.value)

    def write(value: Any) -> tuple[Splice, ...]:
        for table, rows in tables:
            if not rows or rows % value:
                raise refuse(f"{table} may end before a multiple of {value}")
        return (Splice(file.path, start, end, f"-(-{text} // {value}) * {value}"),)

    return Target(here, 1, write, f"`{width}` at {here}, which is {short(text)}")


def _place(maker: cst.Call | None, width: cst.CSTNode) -> set[int]:
    """Which dimension of what `maker` makes is `width`, where the sizes stand behind each other or in a tuple."""
    sizes = [arg.value for arg in maker.args if arg.keyword is None] if maker is not None else []
    if sizes and isinstance(sizes[0], (cst.Tuple, cst.List)):
        sizes = [each.value for each in sizes[0].elements]
    return {number for number, each in enumerate(sizes) if each is width}
