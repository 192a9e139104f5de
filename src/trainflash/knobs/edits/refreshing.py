"""Matrices that an optimizer factorises anew every few updates: more updates between two factorisations.

Shampoo, SOAP, K-FAC and their like keep roots or inverses of statistics that change slowly, and renew them under `count % N == 0`.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits import intervals
from trainflash.knobs.kinds import RefreshedFactors
from trainflash.knobs.reading import callees, sources
from trainflash.knobs.reading.expressions import given_to, literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

LINALG = "torch.linalg."
DEAR = ("eigh", "eig", "eigvalsh", "svd", "svdvals", "inv", "inv_ex", "pinv", "cholesky", "cholesky_ex", "qr", "solve", "matrix_power")
OF_TORCH = ("torch.inverse", "torch.svd", "torch.qr", "torch.cholesky", "torch.cholesky_inverse", "torch.pinverse", "torch.matrix_exp")
FIRST = 2  # own: counts that begin at 0 or at 1 both factorise at once
SELDOM = 10  # own: from here on a factorisation is no longer what most updates do


def refreshed_factors(edit: RefreshedFactors, scene: Scene) -> tuple[Target, ...]:
    """The one condition `count % N == 0` under which a matrix is factorised. Raises `UsageError` where that is not clear."""
    found = [
        (file, node, asked)
        for file in scene.project.parsed("%")
        for node in file.nodes
        if isinstance(node, cst.If) and (asked := _interval(file, node)) is not None and _factorises(scene, file, node.body)
    ]
    found = [(file, node, asked) for file, node, asked in found if file.function_around(node) is not None]
    if len(found) != 1:
        raise refuse(f"{'no' if not found else 'more than one'} condition of the form `count % N == 0` guards a factorisation")
    file, guard, test = found[0]
    here = file.location(guard)
    if guard.orelse is not None:
        raise refuse(f"{here}: the updates between do something of their own")
    count, number = _parts(test)
    if any(isinstance(node, (cst.Call, cst.NamedExpr)) for node in descendants(count, cst.BaseExpression)):
        raise refuse(f"{here}: `{file.text(count)}` is no plain count")
    known = _known(scene, file, number)
    if known is not None and known >= SELDOM:
        raise refuse(f"{here}: it is done once in {known} updates already")
    if isinstance(number, cst.BinaryOperation) and isinstance(number.operator, cst.Multiply) and isinstance(literal(number.right), int):
        raise refuse(f"{here}: the number of updates is multiplied there already")
    alone = isinstance(file.parent(test), (cst.If, cst.Assign))

    def write(factor: Any) -> tuple[Splice, ...]:
        told = literal(number)
        every = f"{told * factor}" if isinstance(told, int) else f"({file.outer_text(number)} * {factor})"
        text = f"{file.outer_text(count)} % {every} == 0"
        if known is None or known == 1:  # an update that was always the first to factorise still is
            text = f"{file.outer_text(count)} < {FIRST} or {text}"
            text = text if alone else f"({text})"
        return (Splice(file.path, *file.span(test), text),)

    return (Target(here, None, write, f"the condition at {here}"),)


def _interval(file: PythonFile, guard: cst.If) -> cst.BaseExpression | None:
    """The `count % N == 0` or `not count % N` that the condition is, also under a name; None for any other one."""
    test: cst.BaseExpression = guard.test
    function = file.function_around(guard)
    if isinstance(test, cst.Name) and function is not None:
        given = given_to(function, test.value)
        if len(given) != 1:
            return None
        test = given[0]
    parts = [test]
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.Or):
        parts = [test.left, test.right]  # as in `step == 1 or step % every == 0`
    found = [part for part in parts if len(intervals.modulo(part)) == 1 and _zero(part)]
    return found[0] if len(found) == 1 else None


def _zero(test: cst.BaseExpression) -> bool:
    if isinstance(test, cst.Comparison):
        return len(test.comparisons) == 1 and literal(test.comparisons[0].comparator) == 0
    return isinstance(test, cst.UnaryOperation)


def _parts(test: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression]:
    side = test.left if isinstance(test, cst.Comparison) else test.expression  # type: ignore[attr-defined]
    assert isinstance(side, cst.BinaryOperation)
    return side.left, side.right


def _factorises(scene: Scene, file: PythonFile, body: cst.CSTNode) -> bool:
    """Whether `body`, or a function of the program that it calls, factorises a matrix."""
    calls = list(descendants(body, cst.Call))
    reached = callees.reached(scene.project, [each for call in calls for each in callees.meant(scene.project, file, call)])
    inner = [(where, call) for where, each in reached for call in descendants(each, cst.Call)]
    return any(_dear(where, call) for where, call in [*((file, call) for call in calls), *inner])


def _dear(file: PythonFile, call: cst.Call) -> bool:
    full = file.full_name(call.func) or ""
    return full in OF_TORCH or (full.startswith(LINALG) and full.removeprefix(LINALG) in DEAR)


def _known(scene: Scene, file: PythonFile, number: cst.BaseExpression) -> int | None:
    """N, where the program's source says it."""
    try:
        found = sources.Resolver(scene.project).source(file, number)
    except UsageError:
        return None
    return found.value if found is not None and isinstance(found.value, int) and not isinstance(found.value, bool) else None
