"""Means over the steps between two reports: what divides them must follow when reports become rarer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from trainflash.knobs.reading.expressions import UNKNOWN, literal, refuse
from trainflash.knobs.reading.python_source import LOOPS, PythonFile, descendants, dotted


def left_early(file: PythonFile, guard: cst.If) -> list[cst.CSTNode]:
    """What stands behind `if …: return` or `if …: continue` in its block; empty where the condition does anything else."""
    body = guard.body.body
    only = body[0] if len(body) == 1 else None
    only = only.body[0] if isinstance(only, cst.SimpleStatementLine) and len(only.body) == 1 else only
    leaves = isinstance(only, cst.Continue) or (isinstance(only, cst.Return) and only.value is None)
    block = file.parent(guard)
    around = file.parent(block) if block is not None else None
    if not leaves or guard.orelse is not None or not isinstance(around, (cst.FunctionDef, *LOOPS)):
        return []
    if isinstance(only, cst.Continue) is not isinstance(around, LOOPS):
        return []
    rows = list(block.body)  # type: ignore[union-attr]
    return rows[rows.index(guard) + 1 :]


def followers(
    file: PythonFile, guard: cst.If, body: Sequence[cst.CSTNode], number: cst.BaseExpression, value: Any
) -> list[cst.BaseExpression]:
    """Expressions that say the same interval again and must stay equal to it: what divides a sum that each report begins anew.

    `number` is the interval in the condition of `guard`, which guards `body`; `value` is what it is. Raises `UsageError` where another
    fixed number divides.
    """
    sums = _begun_anew(file, guard, body)
    found = []
    for divisor in _divisors(body, sums):
        words = {dotted(node) for node in descendants(divisor, (cst.Name, cst.Attribute))} - {None}
        if words & _counted(file, guard):
            continue
        if literal(divisor) == value or _text(file, divisor) == _text(file, number):
            found.append(divisor)
            continue
        raise refuse(f"{file.location(divisor)}: a sum over the steps between two reports is divided by `{file.text(divisor)}`")
    return found


def last_of_window(number: cst.BaseExpression, guard: cst.If, value: int) -> cst.BaseExpression | None:
    """k in `step % N == k` where it is the last step of N, written as a number: it must stay N - 1."""
    for each in descendants(guard.test, cst.Comparison):
        left = each.left
        if isinstance(left, cst.BinaryOperation) and left.right is number:
            last = each.comparisons[0].comparator
            if value > 1 and literal(last) == value - 1:
                return last
    return None


def ends(file: PythonFile, guard: cst.If, number: cst.BaseExpression, *, divided: bool) -> list[cst.BaseExpression]:
    """Where k of `step % N == k` says N again, as in `N - 1`. Raises `UsageError` where a sum is `divided` and k may be any step."""
    comparisons = [each for each in descendants(guard.test, cst.Comparison) if getattr(each.left, "right", None) is number]
    found = []
    for last in (each.comparisons[0].comparator for each in comparisons):  # type: ignore[attr-defined]
        said = [node for node in descendants(last, cst.BaseExpression) if _text(file, node) == _text(file, number)]
        if divided and not said and literal(last) is UNKNOWN:
            raise refuse(f"{file.location(last)}: `{file.text(last)}` may be any step of the interval, over which a sum is divided")
        found += said[:1]
    return found  # type: ignore[return-value]


def _begun_anew(file: PythonFile, guard: cst.If, body: Sequence[cst.CSTNode]) -> set[str]:
    """Names that the loop adds to and that the guarded block sets again."""
    again = {dotted(target.target) for part in body for node in descendants(part, cst.Assign) for target in node.targets}
    again |= {dotted(node.func.value) for part in body for node in descendants(part, cst.Call) if _zeroed(node)}  # type: ignore[union-attr]
    return {name for name in _counted(file, guard) if name in again}


def _zeroed(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in ("zero_", "fill_")


def _counted(file: PythonFile, guard: cst.If) -> set[str]:
    """Names that the loop around the guard, or the function where there is none, adds to; and its own variables."""
    around = next((up for up in file.ancestors(guard) if isinstance(up, (*LOOPS, cst.FunctionDef))), file.module)
    found = {dotted(node.target) for node in descendants(around, cst.AugAssign)}
    for node in descendants(around, cst.Assign):
        if isinstance(node.value, cst.BinaryOperation) and isinstance(node.value.operator, cst.Add):
            found |= {dotted(each.target) for each in node.targets} & {dotted(node.value.left), dotted(node.value.right)}
    if isinstance(around, cst.For):
        found |= {name.value for name in descendants(around.target, cst.Name)}
    return {name for name in found if name is not None}


def _divisors(body: Sequence[cst.CSTNode], sums: set[str]) -> list[cst.BaseExpression]:
    found = []
    for node in (each for part in body for each in descendants(part, (cst.BinaryOperation, cst.AugAssign))):
        divides = isinstance(node.operator, (cst.Divide, cst.FloorDivide, cst.DivideAssign))
        top = node.target if isinstance(node, cst.AugAssign) else node.left
        read = {dotted(each) for each in (top, *descendants(top, (cst.Name, cst.Attribute)))}
        if divides and read & sums:
            found.append(node.value if isinstance(node, cst.AugAssign) else node.right)
    return found


def _text(file: PythonFile, node: cst.BaseExpression) -> str:
    return file.text(node).strip("() ")
