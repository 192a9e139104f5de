"""Predictions for those positions alone whose target counts: they are selected in front of the last layer.

A loss over classes leaves out targets that equal its `ignore_index`. Where the layer that predicts treats each position by itself, and
nothing but the loss reads what it predicts, the others need no predictions.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.edits.statements import without
from trainflash.knobs.edits.which_call import only_call
from trainflash.knobs.kinds import CountedTargets
from trainflash.knobs.reading.expressions import argument_node, free_name, literal, made_as, operand, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, has_splat, keyword, parameter, sole, string_value
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training.each_position import EachPosition

LOSS, OBJECT = "torch.nn.functional.cross_entropy", "torch.nn.CrossEntropyLoss"
POSITIONS = {LOSS: 4, OBJECT: 2}  # where `ignore_index` stands
SUMMED = ("mean", "sum")
FLAT = ("view", "reshape", "flatten", "ravel")  # positions in a row, which those that are selected are anyway
CLASSES_LAST = ((1, 2), (2, 1), (1, -1), (-1, 1), (-1, -2), (-2, -1))  # dimensions exchanged, so that classes come second, as losses want
CASTS = ("float", "double")
NAMES = ("counted", "compared", "counts")


@dataclass(frozen=True)
class _Predicted:
    """What leads from the last layer to the loss: the call of that layer, and what is done with what it gives."""

    head: cst.BaseExpression
    name: str | None  # what the call's value is called; None: it stands in the loss itself
    between: tuple[cst.Assign, ...]  # statements that give it other forms, in their order
    taken: str  # what is taken of its positions, such as "[:, :-1]"
    casts: str  # methods that change the format of numbers, such as ".float()"


def counted_targets(edit: CountedTargets, scene: Scene) -> tuple[Target, ...]:
    """The loss at the line that the run saw. Raises `UsageError` where more than the loss reads the predictions, or positions are mixed."""
    seen = scene.facts.get("ignored_targets")
    file, place = scene.source("compares predictions with targets", seen.location if seen is not None else None)
    loss = only_call(file, place, lambda call: _made(file, call) is not None, "of cross_entropy or of a CrossEntropyLoss")
    ignored = _ignored(file, loss)
    predictions, targets = argument_node(file, loss, "input", 0), argument_node(file, loss, "target", 1)
    if predictions is None or targets is None:
        raise refuse(f"{file.location(loss)}: `{short(file.text(loss))}` is not given predictions and targets")
    found = _predicted(file, loss, predictions)
    begin = file.statement(found.head)
    selected = EachPosition(scene.project).of_call(file, found.head)
    if selected is None or begin is None:
        raise refuse(f"{file.location(found.head)}: `{short(file.text(found.head))}` may not treat each position by itself")
    small = sole(begin)
    if found.name is not None and not isinstance(small, (cst.Assign, cst.AnnAssign)):
        raise refuse(f"{file.location(found.head)}: other statements stand on this line")
    told, kept = _told(file, targets, begin)
    if any(_selects(node) for node in (selected, _unshaped(targets))):
        raise refuse(f"{file.location(loss)}: positions are selected already")
    name = free_name(file, loss, *NAMES)
    at = file.span(begin)[0]
    base = found.name or _head(file, found, selected, name)
    splices = [
        Splice(file.path, at, at, f"{name} = {told} != {ignored}{file.newline}{file.indent(begin)}"),
        Splice(file.path, *file.outer_span(predictions), f"{base}{found.casts}"),
        Splice(file.path, *file.outer_span(targets), f"{kept}[{name}]"),
    ]
    if found.name is not None:
        splices.append(Splice(file.path, *file.outer_span(selected), f"{operand(file, selected)}{found.taken}[{name}]"))
    if found.between:
        splices += without(file, found.between)
    what = f"the targets of `{short(file.text(loss.func))}` at {file.location(loss)}"
    return (Target(file.location(loss), None, lambda value: tuple(splices), what, "positions selected"),)


def _head(file: PythonFile, found: _Predicted, selected: cst.BaseExpression, name: str) -> str:
    """Source of the last layer's call, of the selected positions."""
    start, end = file.span(found.head)
    first, last = file.outer_span(selected)
    text = file.raw[start:first].decode() + f"{operand(file, selected)}{found.taken}[{name}]" + file.raw[last:end].decode()
    return f"({text})" if found.casts and not isinstance(found.head, cst.Call) else text


def _made(file: PythonFile, call: cst.Call) -> cst.Call | None:
    """The call that says what a loss ignores: `call` itself, or the one that made the object that is called; None for no such loss."""
    if file.full_name(call.func) == LOSS:
        return call
    made = call.func if isinstance(call.func, cst.Call) else made_as(file, call.func)
    return made if made is not None and file.full_name(made.func) == OBJECT else None


def _ignored(file: PythonFile, loss: cst.Call) -> str:
    """Source of the value that the loss ignores."""
    made = _made(file, loss)
    full = "" if made is None else file.full_name(made.func) or ""
    if made is None or has_splat(made, "*") or has_splat(made, "**") or has_splat(loss, "*") or has_splat(loss, "**"):
        raise refuse(f"{file.location(loss)}: what the loss is given cannot be told")
    if any(keyword(made, old) is not None for old in ("size_average", "reduce")):
        raise refuse(f"{file.location(made)}: how the loss is summed is said in a way that torch has given up")
    reduction = keyword(made, "reduction")
    if (reduction is not None and string_value(reduction.value) not in SUMMED) or sum(arg.keyword is None for arg in made.args) > 5:
        raise refuse(f"{file.location(made)}: the loss is not summed over its targets, or is not known to be")
    if made is not loss and not isinstance(loss.func, cst.Call):
        return f"{file.text(loss.func)}.ignore_index"
    given = argument_node(file, made, "ignore_index", POSITIONS[full])
    if given is None:
        return "-100"
    if not isinstance(given, (cst.Name, cst.Attribute)) and type(literal(given)) is not int:
        raise refuse(f"{file.location(given)}: `{short(file.text(given))}` would be computed twice")
    return file.text(given)


def _predicted(file: PythonFile, loss: cst.Call, predictions: cst.BaseExpression) -> _Predicted:
    """Raises `UsageError` where it cannot be followed, or where something else reads what stands between."""
    here, node = file.location(loss), predictions
    line, between, taken, casts, name = file.statement(loss), [], "", "", None
    readable: list[cst.CSTNode] = [predictions]
    while True:
        if isinstance(node, cst.Name):
            name, assign = node.value, _only_assignment(file, node)
            if assign is None or line is None or file.parent(file.parent(assign)) is not file.parent(line):  # type: ignore[arg-type]
                raise refuse(f"{here}: where `{name}` comes from cannot be told, or it is made under another condition")
            _nobody_else(file, name, assign, readable)
            readable.append(assign.value)
            between.append(assign)
            node = assign.value
        elif isinstance(node, cst.Subscript):
            taken = _positions(file, node) + taken
            node = node.value
        elif _is_form(node):
            if taken and node.func.attr.value not in (*CASTS, "contiguous"):  # type: ignore[union-attr]
                raise refuse(f"{here}: positions are taken of the predictions in another form than the layer's")
            casts = f".{node.func.attr.value}(){casts}" if node.func.attr.value in CASTS else casts  # type: ignore[union-attr]
            node = node.func.value  # type: ignore[union-attr]
        else:
            break
    if not between or between[-1].value is not node:  # the layer's call stands inside of a larger expression
        if between:
            raise refuse(f"{file.location(node)}: the call of the last layer is part of a larger expression")
        return _Predicted(node, None, (), taken, casts)
    return _Predicted(node, name, tuple(reversed(between[:-1])), taken, casts)


def _only_assignment(file: PythonFile, node: cst.Name) -> cst.Assign | None:
    """The only statement that gives the name its value, `name = …`."""
    scope = file.scope(node)
    bound = [each for each in (scope[node.value] if scope is not None else ())]
    nodes = [file.parent(getattr(each, "node", None)) for each in bound]  # type: ignore[arg-type]
    assign = file.parent(nodes[0]) if len(nodes) == 1 and isinstance(nodes[0], cst.AssignTarget) else None
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return None
    return assign if sole(file.parent(assign)) is assign else None


def _nobody_else(file: PythonFile, name: str, assign: cst.Assign, readable: list[cst.CSTNode]) -> None:
    """Raises `UsageError` where the variable is read outside of the parts `readable`."""
    scope = file.scope(assign.targets[0].target)
    for access in (access for each in (scope[name] if scope is not None else ()) for access in getattr(each, "references", ())):
        if not any(file.inside(access.node, part) for part in readable):
            raise refuse(f"{file.location(access.node)}: `{name}` of all positions is read beside the loss")


def _positions(file: PythonFile, node: cst.Subscript) -> str:
    """Source of a subscript that takes positions, and leaves the classes as they are. Raises `UsageError` for another one."""
    parts = [each.slice for each in node.slice]
    plain = [isinstance(part, cst.Slice) or (isinstance(part, cst.Index) and _is_place(part.value)) for part in parts]
    dots = [at for at, part in enumerate(parts) if isinstance(part, cst.Index) and isinstance(part.value, cst.Ellipsis)]
    last = parts[-1]
    whole = isinstance(last, cst.Slice) and last.lower is None and last.upper is None and last.step is None
    if not all(plain) or ((dots or len(parts) > 2) and not (whole or dots == [len(parts) - 1])):
        raise refuse(f"{file.location(node)}: `{short(file.text(node))}` takes more than positions, or is not known not to")
    return file.text(node)[len(file.text(node.value)) :]


def _selects(node: cst.BaseExpression) -> bool:
    """Whether it is `something[mask]`."""
    index = node.slice[0].slice if isinstance(node, cst.Subscript) and len(node.slice) == 1 else None
    return isinstance(index, cst.Index) and isinstance(index.value, (cst.Name, cst.Attribute, cst.Comparison, cst.UnaryOperation))


def _is_place(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Ellipsis) or type(literal(node)) is int


def _is_form(node: cst.BaseExpression) -> bool:
    """Whether it is a method's call that gives predictions another form, or format."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    name, given = node.func.attr.value, tuple(literal(arg.value) for arg in node.args)
    if name in ("transpose", "swapaxes"):
        return given in CLASSES_LAST
    if name == "permute":
        return given in ((0, 2, 1), (0, 3, 1, 2))
    if name == "movedim":
        return given in ((-1, 1), (2, 1), (3, 1))
    if name in (*CASTS, "contiguous"):
        return not node.args
    return name in FLAT and (name in ("flatten", "ravel") or len(node.args) == 2)


def _told(file: PythonFile, targets: cst.BaseExpression, begin: cst.CSTNode) -> tuple[str, str]:
    """Source of the targets in front of the statement `begin`, and at the loss: in the form that they have there, not in a row."""
    core = _unshaped(targets)
    if isinstance(core, cst.Name) and not _bound_before(file, core, begin):
        made = _only_assignment(file, core)
        inner = None if made is None else _unshaped(made.value)
        if made is None or inner is None or not _is_read(inner) or _rowed(made.value) or not _reads_early(file, inner, begin):
            raise refuse(f"{file.location(core)}: `{core.value}` is made behind the predictions")
        return operand(file, inner), core.value
    if not _is_read(core) or not _reads_early(file, core, begin):
        raise refuse(f"{file.location(targets)}: `{short(file.text(targets))}` would be computed twice")
    return operand(file, core), operand(file, core)


def _unshaped(node: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in (*FLAT, "contiguous", "long"):
        if node.func.attr.value in ("view", "reshape") and len(node.args) != 1:
            break
        node = node.func.value
    return node


def _rowed(node: cst.BaseExpression) -> bool:
    """Whether the form of targets is given up on the way."""
    return any(isinstance(call.func, cst.Attribute) and call.func.attr.value in FLAT for call in descendants(node, cst.Call))  # type: ignore[attr-defined]


def _is_read(node: cst.BaseExpression) -> bool:
    """Whether it only names something, or a part of it."""
    return not any(True for _ in descendants(node, (cst.Call, cst.Await, cst.NamedExpr, cst.BinaryOperation))) and isinstance(
        node, (cst.Name, cst.Attribute, cst.Subscript)
    )


def _reads_early(file: PythonFile, node: cst.BaseExpression, begin: cst.CSTNode) -> bool:
    names = [each for each in descendants(node, cst.Name) if not _is_attribute(file, each)]
    return all(_bound_before(file, each, begin) for each in names)  # type: ignore[arg-type]


def _is_attribute(file: PythonFile, node: cst.CSTNode) -> bool:
    up = file.parent(node)
    return isinstance(up, cst.Attribute) and up.attr is node


def _bound_before(file: PythonFile, node: cst.Name, begin: cst.CSTNode) -> bool:
    """Whether the name has its value, and keeps it, in front of the statement `begin` already."""
    scope = file.scope(node)
    bound = [getattr(each, "node", None) for each in (scope[node.value] if scope is not None else ())]
    function, start = file.function_around(node), file.span(begin)[0]
    if parameter(function, node.value) is not None:
        return all(isinstance(each, cst.Param) or (each is not None and file.span(each)[0] < start) for each in bound)
    return bool(bound) and all(each is not None and file.span(each)[0] < start for each in bound)
