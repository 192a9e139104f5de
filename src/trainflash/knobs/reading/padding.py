"""Whether a collate function and the network bear batches that are as wide as their longest sample."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted
from trainflash.knobs.scene import Scene

SHAPES = {
    "Parameter",
    "view",
    "reshape",
    "Linear",
    "LayerNorm",
    "BatchNorm1d",
    "Unflatten",
    "LazyLinear",
    "register_buffer",
    "expand",
    "AvgPool1d",
}


def cuts(function: cst.FunctionDef) -> bool:
    """Whether samples may be cut to a length: any slice up to something but a sample's own length."""
    uppers = [each.upper for each in descendants(function.body, cst.Slice) if each.upper is not None]
    return any(not (isinstance(upper, cst.Call) and dotted(upper.func) == "len") for upper in uppers)


def rows_as_they_are(file: PythonFile, function: cst.FunctionDef, names: set[str]) -> None:
    """Samples are as long in the loop as in the batch, cuts aside, and every row is filled from its start."""
    for assign in descendants(function.body, cst.Assign):
        for target in assign.targets:
            held = (
                {each.value for each in descendants(target.target, cst.Name)} if isinstance(target.target, (cst.Name, cst.Tuple)) else set()
            )
            if held & names and not _keeps_length(file, assign.value, held):
                raise refuse(f"{file.location(assign)}: `{file.text(assign)}` may change the length of a sample")
            last = target.target.slice[-1].slice if isinstance(target.target, cst.Subscript) else None
            if isinstance(last, cst.Slice) and (last.upper is not None or last.lower is not None):
                plain = isinstance(last.upper, cst.Call) and dotted(last.upper.func) == "len" and last.lower is None
                if not plain:
                    raise refuse(f"{file.location(assign)}: `{file.text(assign)}` does not fill a row from its start to a sample's length")
    for node in descendants(function.body, cst.AugAssign):
        if dotted(node.target) in names:
            raise refuse(f"{file.location(node)}: `{file.text(node)}` may change the length of a sample")


def _keeps_length(file: PythonFile, value: cst.BaseExpression, names: set[str]) -> bool:
    """A sample made a tensor, or cut from its start."""
    if isinstance(value, cst.Call) and file.full_name(value.func) in (
        "torch.tensor",
        "torch.as_tensor",
        "torch.from_numpy",
        "numpy.asarray",
    ):
        return bool(value.args) and _keeps_length(file, value.args[0].value, names)
    if isinstance(value, cst.Subscript) and len(value.slice) == 1 and isinstance(value.slice[0].slice, cst.Slice):
        cut = value.slice[0].slice
        return cut.lower is None and cut.step is None and _keeps_length(file, value.value, names)
    return dotted(value) in names


def network_of_any_width(scene: Scene, file: PythonFile, function: cst.FunctionDef, width: cst.BaseExpression) -> None:
    """No parameter, buffer or reshaping of the program is made of the width."""
    name = dotted(width)
    if name is None:
        return
    for where in scene.project.parsed(name.split(".")[-1]):
        for call in where.calls:
            tail = (where.full_name(call.func) or "").split(".")[-1] or (
                call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
            )
            if where is file and where.inside(call, function):
                continue
            if tail in SHAPES and any(
                _last(each) == _last(width) for arg in call.args for each in descendants(arg.value, (cst.Name, cst.Attribute))
            ):
                raise refuse(f"{where.location(call)}: `{where.text(call)}` counts on {name}, and a narrower batch may not fit")


def _last(node: cst.BaseExpression) -> str:
    return (dotted(node) or "?").split(".")[-1]
