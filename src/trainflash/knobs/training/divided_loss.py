"""What a backward pass is called on: a loss that is divided by the number of its micro-batches, or weighed by their rows."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, positional, string_value, targets_of
from trainflash.knobs.training.backward_loops import BackwardLoop

DEEPEST = 4  # own: names between a loss and what it is made of
UNDIVIDED = "the loss of a piece is not divided by the number of pieces"


@dataclass(frozen=True)
class DividedLoss:
    """`loss` and `divisor` of `(loss / divisor).backward()`, also where names stand between."""

    file: PythonFile
    loss: cst.BaseExpression
    divisor: cst.BaseExpression


def divided_loss(project: Project, region: BackwardLoop) -> DividedLoss:
    """Raises `UsageError` where the loss is not divided as a whole."""
    file, call = region.backward
    node = positional(call, 0)
    value = node.value if node is not None else call.func.value  # type: ignore[union-attr]
    sites = list(region.sites)
    for function in [function for _, function in region.helpers]:
        index = next((n for n, each in enumerate(function.params.params) if each.name.value == dotted(_unscaled(value))), None)
        if index is None:
            break
        file, site = sites.pop(0)
        given = positional(site, index - (1 if isinstance(site.func, cst.Attribute) and file.class_of(function) is not None else 0))
        if given is None:
            break
        value = given.value
    found = _divided(file, _unscaled(value), call)
    if found is None:
        raise refuse(f"{region.here()}: {UNDIVIDED}")
    return found


def _unscaled(value: cst.BaseExpression) -> cst.BaseExpression:
    """`loss` of `scaler.scale(loss)`."""
    scaled = isinstance(value, cst.Call) and callees.called_name(value) == "scale" and len(value.args) == 1
    return value.args[0].value if scaled else value  # type: ignore[attr-defined]


def _divided(file: PythonFile, value: cst.BaseExpression, before: cst.CSTNode, depth: int = DEEPEST) -> DividedLoss | None:
    if isinstance(value, cst.Name) and depth:
        given = _last_given(file, value.value, before)
        if isinstance(given, cst.AugAssign):
            return DividedLoss(file, value, given.value) if isinstance(given.operator, cst.DivideAssign) else None
        return _divided(file, _unscaled(given.value), given, depth - 1) if isinstance(given, cst.Assign) else None
    if not isinstance(value, cst.BinaryOperation):
        return None
    if isinstance(value.operator, cst.Divide):
        return DividedLoss(file, value.left, value.right)
    if isinstance(value.operator, cst.Multiply):  # loss * (len(piece) / len(whole))
        for loss, weight in ((value.left, value.right), (value.right, value.left)):
            if isinstance(weight, cst.BinaryOperation) and isinstance(weight.operator, cst.Divide):
                return DividedLoss(file, loss, weight.right)
    return None


def _last_given(file: PythonFile, name: str, before: cst.CSTNode) -> cst.CSTNode | None:
    """The last assignment to `name` in front of `before` in its function."""
    owner = file.function_around(before) or file.module
    found = [node for node in descendants(owner, (cst.Assign, cst.AugAssign)) if any(dotted(target) == name for target in targets_of(node))]
    ahead = [node for node in found if file.span(node)[0] < file.span(before)[0]]
    return max(ahead, key=lambda node: file.span(node)[0], default=None)


def is_sum(project: Project, found: DividedLoss) -> bool:
    """Whether what is divided is summed over its rows, by torch's losses (`reduction="sum"`) or by `.sum()`, in all of its terms."""
    return _summed(project, found.file, found.loss, found.divisor, DEEPEST)


def _summed(project: Project, file: PythonFile, value: cst.BaseExpression | None, before: cst.CSTNode, depth: int) -> bool:
    if isinstance(value, cst.Name) and depth:
        assigned = _last_given(file, value.value, before)
        return isinstance(assigned, cst.Assign) and _summed(project, file, assigned.value, assigned, depth - 1)
    if isinstance(value, cst.BinaryOperation):
        left, right = ((side, _summed(project, file, side, before, depth)) for side in (value.left, value.right))
        if isinstance(value.operator, (cst.Add, cst.Subtract)):
            return left[1] and right[1]
        scaled = isinstance(value.operator, (cst.Multiply, cst.Divide)) and left[1] and _is_factor(right[0])
        return scaled or (isinstance(value.operator, cst.Multiply) and right[1] and _is_factor(left[0]))
    if not isinstance(value, cst.Call):
        return False
    reduction = keyword(value, "reduction")
    if reduction is not None:
        return string_value(reduction.value) == "sum"
    if _sums_all(file, value):
        return True
    meant = list(callees.meant(project, file, value)) if depth else []
    returned = [(where, node) for where, each in meant for node in descendants(each.body, cst.Return)]
    return bool(returned) and all(_summed(project, where, node.value, node, depth - 1) for where, node in returned)  # type: ignore[attr-defined]


def _sums_all(file: PythonFile, call: cst.Call) -> bool:
    """`x.sum()` and `torch.sum(x)`, of everything."""
    function = (file.full_name(call.func) or "").startswith("torch.")
    return callees.called_name(call) == "sum" and len(call.args) == (1 if function else 0)


def _is_factor(node: cst.BaseExpression) -> bool:
    """Whether a factor is the same for all rows: a number, or an attribute of the object."""
    return isinstance(literal(node), (int, float)) or (dotted(node) or "").startswith("self.")


def no_sum(project: Project, found: DividedLoss) -> None:
    """Raises `UsageError` where what is divided, or a function that makes it, ends in a sum over everything."""
    todo: list[tuple[PythonFile, cst.CSTNode, cst.CSTNode | None]] = [(found.file, found.loss, found.divisor)]
    seen: set[int] = set()
    while todo:
        file, part, before = todo.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        for call in descendants(part, cst.Call):
            if _sums_all(file, call):  # type: ignore[arg-type]
                raise refuse(f"{file.location(call)}: `{short(file.text(call))}`: the loss is a sum over rows: more would weigh more")
            for where, each in callees.meant(project, file, call):  # type: ignore[arg-type]
                todo.append((where, each, None))
        for name in descendants(part, cst.Name) if before is not None else ():
            given = _last_given(file, name.value, before)  # type: ignore[attr-defined,arg-type]
            if given is not None:
                todo.append((file, given.value, given))  # type: ignore[attr-defined]
