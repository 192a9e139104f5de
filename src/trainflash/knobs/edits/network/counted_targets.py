"""Predictions for those positions alone whose target counts: they are selected in front of the last layer.

A loss over classes leaves out targets that equal its `ignore_index`. Where the layer that predicts treats each position by itself, and
nothing but the loss reads what it predicts, the others need no predictions.
"""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits.keeping.kept_calls import set_once
from trainflash.knobs.edits.network import class_losses
from trainflash.knobs.edits.network.predicted import FLAT, Predicted
from trainflash.knobs.edits.statements import without
from trainflash.knobs.edits.which_call import only_call
from trainflash.knobs.kinds import CountedTargets
from trainflash.knobs.project import Project
from trainflash.knobs.reading import own_classes
from trainflash.knobs.reading.expressions import argument_node, free_name, given_to, operand, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, sole
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training.each_position import EachPosition

OF_TARGETS = ("view", "reshape", "flatten", "ravel", "contiguous", "long")
ASKS = ("size", "dim", "numel")
NAMES = ("counted", "compared", "counts")
# What sees the predictions, or puts another module in the layer's place, or cannot have as many rows as a mask says.
CHANGES = ("get_peft_model", "prepare_qat", "convert_to_float8", "register_parametrization", "quantize_", "inject_adapter")
CHANGES += ("vmap", "CUDAGraph", "cuda.graph", "make_graphed_callables")
UNDER = (cst.Lambda, cst.IfExp, cst.BooleanOperation, cst.ListComp, cst.GeneratorExp, cst.SetComp, cst.DictComp)


def counted_targets(edit: CountedTargets, scene: Scene) -> tuple[Target, ...]:
    """The loss at the line that the run saw. Raises `UsageError` where more than the loss reads the predictions, or positions are mixed."""
    project, seen = scene.project, scene.facts.get("ignored_targets")
    file, place = scene.source("compares predictions with targets", seen.location if seen is not None else None)
    kinds = "of cross_entropy or of a CrossEntropyLoss"
    loss = only_call(file, place, lambda call: class_losses.made(project, file, call) is not None, kinds)
    class_losses.summed(project, file, loss)
    line = _line(file, loss)
    _nothing_changes(project)
    predictions, targets = argument_node(file, loss, "input", 0), argument_node(file, loss, "target", 1)
    if predictions is None or targets is None:
        raise refuse(f"{file.location(loss)}: `{short(file.text(loss))}` is not given predictions and targets")
    found = Predicted(file, line, [predictions])
    head = found.follow(predictions)
    selected = EachPosition(project).of_call(file, head)
    if selected is None:
        raise refuse(f"{file.location(head)}: `{short(file.text(head))}` may not treat each position by itself")
    if isinstance(head, cst.Call):
        _stays(project, file, head)
    told = _told(found, targets)
    if any(_selects(node) for node in (selected, _unshaped(targets))):
        raise refuse(f"{file.location(loss)}: positions are selected already")
    ignored = class_losses.ignored(project, file, loss, lambda node: _reads_early(found, node))
    name = free_name(file, loss, *NAMES)
    splices = _splices(found, head, selected, targets, f"{name} = {told} != {ignored}", name)
    what = f"the targets of `{short(file.text(loss.func))}` at {file.location(loss)}"
    return (Target(file.location(loss), None, lambda value: splices, what, "positions selected"),)


def _splices(
    found: Predicted,
    head: cst.BaseExpression,
    selected: cst.BaseExpression,
    targets: cst.BaseExpression,
    mask: str,
    name: str,
) -> tuple[Splice, ...]:
    """The statement `mask` in front of the layer's call, its input and the targets selected, other forms of predictions gone."""
    file, at = found.file, found.file.span(found.begin)[0]
    given = f"{operand(file, selected)}{found.taken}{'.flatten(0, -2)' if found.flat else ''}[{name}]"
    start, end = file.span(head)
    first, last = file.outer_span(selected)
    called = file.raw[start:first].decode() + given + file.raw[last:end].decode()
    splices = [
        Splice(file.path, at, at, f"{mask}{file.newline}{file.indent(found.begin)}"),
        Splice(file.path, *file.outer_span(targets), f"{operand(file, targets)}[{name}]"),
    ]
    predicted = found.readable[0]
    if not found.assigns:
        wrapped = f"({called})" if found.casts and not isinstance(head, cst.Call) else called
        splices.append(Splice(file.path, *file.outer_span(predicted), f"{wrapped}{found.casts}"))  # type: ignore[arg-type]
        return tuple(splices)
    inner = found.assigns[-1]
    splices.append(Splice(file.path, *file.outer_span(predicted), f"{inner.targets[0].target.value}{found.casts}"))  # type: ignore[arg-type,attr-defined]
    if inner.value is head:
        splices.append(Splice(file.path, first, last, given))
    else:
        splices.append(Splice(file.path, *file.outer_span(inner.value), called))
    if found.assigns[:-1]:
        splices += without(file, found.assigns[:-1])
    return tuple(splices)


def _line(file: PythonFile, loss: cst.Call) -> cst.SimpleStatementLine:
    """The statement of the loss. Raises `UsageError` where it has none of its own, or is computed under a condition inside it."""
    line = file.statement(loss)
    if line is None:
        raise refuse(f"{file.location(loss)}: other statements stand on this line")
    for up in file.ancestors(loss):
        if up is line:
            break
        if isinstance(up, UNDER):
            raise refuse(f"{file.location(loss)}: the loss is computed under a condition, or more than once, in this statement")
    return line


def _nothing_changes(project: Project) -> None:
    for word in CHANGES:
        for file in project.parsed(word):
            raise refuse(f"{file.path}: `{word}` may change the last layer, or see what it predicts")


def _stays(project: Project, file: PythonFile, head: cst.Call) -> None:
    """Raises `UsageError` where the layer that `head` calls may be another one than its class makes: set from outside, or by its kin."""
    name = dotted(head.func) or ""
    if not name.startswith("self."):
        return
    field_name, owner = name.removeprefix("self."), file.class_around(head)
    kin = own_classes.kin(project, owner) - {owner.name.value} if owner is not None else set()
    others = [each for _, each in own_classes.classes(project) if each.name.value in kin and given_to(each.body, name)]
    if "." in field_name or others or not set_once(project, field_name, whole=False):
        raise refuse(f"{file.location(head)}: `{name}` may be another layer than the one that its class makes")


def _selects(node: cst.BaseExpression) -> bool:
    """Whether it is `something[mask]`."""
    index = node.slice[0].slice if isinstance(node, cst.Subscript) and len(node.slice) == 1 else None
    return isinstance(index, cst.Index) and isinstance(index.value, (cst.Name, cst.Attribute, cst.Comparison, cst.UnaryOperation))


def _told(found: Predicted, targets: cst.BaseExpression) -> str:
    """Source of the targets in front of the layer's statement. Raises `UsageError` where they are not known yet, or change behind it."""
    file, core, forms, also = found.file, _unshaped(targets), _forms(targets), None
    if isinstance(core, cst.Name) and not _reads_early(found, core):
        also = Predicted(file, found.line, [])
        also.made(core, found.line)
        forms, core = forms | _forms(also.assigns[0].value), _unshaped(also.assigns[0].value)
    if not _is_read(core) or not _reads_early(found, core):
        raise refuse(f"{file.location(targets)}: `{short(file.text(targets))}` is made behind the predictions, or would be computed twice")
    if found.pairs and not (isinstance(core, cst.Subscript) and len(core.slice) > 1):
        raise refuse(f"{file.location(targets)}: whether `{found.taken}` takes positions or classes cannot be told")
    _nothing_between(found, also.assigns[0] if also is not None else None, core)
    if also is None:
        return file.text(targets)
    return operand(file, core) + (".long()" if "long" in forms else "") + (".flatten()" if forms & {*FLAT, "ravel"} else "")


def _nothing_between(found: Predicted, also: cst.Assign | None, core: cst.BaseExpression) -> None:
    """Raises `UsageError` where a statement between the layer and the loss may change the targets, or leave."""
    rows = found.rows
    names = {each.value for each in descendants(core, cst.Name)}  # type: ignore[attr-defined]
    for row in rows[rows.index(found.begin) + 1 : rows.index(found.line)]:
        small = sole(row)
        if small is not None and (small is also or small in found.assigns):
            continue
        plain = isinstance(small, cst.Assign) and all(isinstance(each.target, (cst.Name, cst.Tuple)) for each in small.targets)
        calls = [] if not plain else [each for each in descendants(small.value, cst.Call)]  # type: ignore[union-attr]
        told = plain and not names & {each.value for target in small.targets for each in descendants(target, cst.Name)}  # type: ignore[union-attr,attr-defined]
        if not told or not all(_only_asks(found.file, call) for call in calls):  # type: ignore[arg-type]
            raise refuse(f"{found.file.location(row)}: what stands between the predictions and their loss may change the targets")


def _only_asks(file: PythonFile, call: cst.Call) -> bool:
    """Whether a call makes the loss's object, or asks for sizes."""
    return file.full_name(call.func) == class_losses.OBJECT or (isinstance(call.func, cst.Attribute) and call.func.attr.value in ASKS)


def _unshaped(node: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in OF_TARGETS:
        if node.func.attr.value in ("view", "reshape") and len(node.args) != 1:
            break
        node = node.func.value
    return node


def _forms(node: cst.BaseExpression) -> set[str]:
    return {call.func.attr.value for call in descendants(node, cst.Call) if isinstance(call.func, cst.Attribute)}  # type: ignore[attr-defined]


def _is_read(node: cst.BaseExpression) -> bool:
    """Whether it only names something, or a part of it."""
    made = any(True for _ in descendants(node, (cst.Call, cst.Await, cst.NamedExpr, cst.BinaryOperation)))
    return not made and isinstance(node, (cst.Name, cst.Attribute, cst.Subscript))


def _reads_early(found: Predicted, node: cst.BaseExpression) -> bool:
    """Whether the names in it have their values, and keep them, in front of the layer's statement already."""
    file, start = found.file, found.file.span(found.begin)[0]
    for each in descendants(node, cst.Name):
        up = file.parent(each)
        if isinstance(up, cst.Attribute) and up.attr is each:
            continue
        scope = file.scope(each)
        bound = [getattr(one, "node", None) for one in (scope[each.value] if scope is not None else ())]  # type: ignore[attr-defined]
        inside = [one for one in bound if one is not None and file.function_around(one) is file.function_around(each)]
        if not bound or any(file.span(one)[0] >= start for one in inside):
            return False
    return True
