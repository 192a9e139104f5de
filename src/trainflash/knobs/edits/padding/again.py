"""Padding that comes on top of a batch that is as wide as its longest sample, or of its first sample: it can go as it stands."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits.statements import whole_lines
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import literal, refuse, same
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted
from trainflash.knobs.reading.sizes import size_of
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import padding, samples

PADS = ("torch.nn.functional.pad",)
LAYERS = ("torch.nn.ConstantPad1d", "torch.nn.ZeroPad1d")
SEQUENCES = "torch.nn.utils.rnn.pad_sequence"
FILLERS = {"zeros", "ones", "full", "new_zeros", "new_ones", "new_full", "repeat"}  # calls that make what is added to a sample
FIXED = (cst.Name, cst.Attribute, cst.Integer)


def targets(scene: Scene, batch: samples.Batch) -> tuple[Target, ...]:
    """The one call that widens the whole batch, or its first sample, to a fixed width; none where the function has no such call."""
    file, function = batch.file, batch.function
    found = [(call, made) for call in descendants(function.body, cst.Call) if (made := _widens(batch, call)) is not None]  # type: ignore[arg-type]
    if not found:
        return ()
    width = found[0][1][1]
    text, here = file.text(width), file.location(found[0][0])
    if {file.text(each) for _, (_, each) in found} != {text}:
        raise refuse(f"{here}: what is padded again has different widths")
    for node in descendants(function.body, FIXED):
        again = any(file.inside(node, call) for call, _ in found)
        if file.text(node) == text and not again and not isinstance(file.parent(node), (cst.Slice, cst.AssignTarget)):
            raise refuse(f"{file.location(node)}: {text} has another use in {function.name.value}")
    padding.network_of_any_width(scene, file, function, width)
    splices = tuple(_without(batch, call, inner) for call, (inner, _) in found)
    return (Target(here, None, lambda value: splices, f"the call at {here}, which pads to {text}", "no padding beyond the longest"),)


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


def _widens(batch: samples.Batch, call: cst.Call) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """What is widened and the width, for `F.pad(x, (0, WIDTH - x.size(1)))` and `nn.ConstantPad1d((0, WIDTH - len(x)), 0)(x)`."""
    layer = isinstance(call.func, cst.Call) and batch.file.full_name(call.func.func) in LAYERS
    if not (layer or batch.file.full_name(call.func) in PADS) or not call.args or any(True for _ in batch.loops(call)):
        return None
    inner, given = call.args[0].value, call.func.args[:1] if layer else call.args[1:2]  # type: ignore[union-attr]
    sides = [each.value for each in given[0].value.elements] if given and isinstance(given[0].value, (cst.Tuple, cst.List)) else []
    if len(sides) != 2 or literal(sides[0]) != 0 or not isinstance(sides[1], cst.BinaryOperation):
        return None
    if not isinstance(sides[1].operator, cst.Subtract) or not isinstance(sides[1].left, FIXED):
        return None
    if _of(batch.file, sides[1].right) != batch.file.text(inner):
        return None
    if isinstance(inner, cst.Subscript) and not _first_of_padded(batch, inner):
        return None
    return inner, sides[1].left


def _of(file: PythonFile, node: cst.BaseExpression) -> str:
    """The text of what `node` measures: `len(x)`, `x.size(1)`, `x.shape[-1]` and the like."""
    found, whole = samples.measured(file, node)[1], size_of(node)
    if found is None and whole is not None and whole[1] == 1:
        found = whole[0]
    return "" if found is None else file.text(found)


def _first_of_padded(batch: samples.Batch, inner: cst.Subscript) -> bool:
    """`x[0]` of a list that `pad_sequence` makes rows of, all as long as the longest."""
    name, calls = dotted(inner.value), descendants(batch.function.body, cst.Call)
    return any(
        (batch.file.full_name(each.func) == SEQUENCES or (dotted(each.func) or "").endswith("pad_sequence"))
        and bool(each.args)
        and dotted(each.args[0].value) == name
        for each in calls
    )


def _without(batch: samples.Batch, call: cst.Call, inner: cst.BaseExpression) -> Splice:
    """`inner` in place of the call; the whole line where that would only assign it to itself."""
    file = batch.file
    up = file.parent(call)
    itself = isinstance(up, cst.Assign) and len(up.targets) == 1 and file.text(up.targets[0].target) == file.text(inner)
    line = file.parent(up) if itself else None
    block = file.parent(line) if line is not None else None
    if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 and isinstance(block, cst.IndentedBlock) and len(block.body) > 1:
        return whole_lines(file, *file.span(line))
    if isinstance(inner, cst.Subscript) and not itself:
        raise refuse(f"{file.location(call)}: what is padded goes elsewhere than into its own place")
    return Splice(file.path, *file.outer_span(call), file.text(inner))
