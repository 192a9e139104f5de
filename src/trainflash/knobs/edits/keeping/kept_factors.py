"""Factorise a matrix that never changes once: `torch.linalg.solve(A, B)` becomes `torch.linalg.lu_solve(*_lu_factor(A), B)`.

`_lu_factor = functools.cache(torch.linalg.lu_factor)` keeps the factors of what `kept_calls` can keep. `solve` does the same two steps
inside; it also takes a vector, which `lu_solve` does not, so that the source must show a matrix.
"""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.keeping.kept_calls import cache_of, constant
from trainflash.knobs.reading.expressions import literal, refuse, value_of
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.schema import Location

SOLVE = "torch.linalg.solve"
TURNED = ("T", "mT", "H", "mH")  # of matrices
TURNS = ("t", "transpose", "unsqueeze")


def kept_factors(scene: Scene, place: Location) -> Target | None:
    """The one such call at a line that was seen to repeat its work; None without one. Raises `UsageError` with a reason."""
    if not scene.project.owns(place):
        return None
    file = scene.project.python(place.file)
    calls = [call for call in file.calls if file.covers(call, place.line) and file.full_name(call.func) == SOLVE]
    if not calls:
        return None
    if len(calls) > 1:
        raise refuse(f"{place}: more than one matrix is solved with there")
    call, here = calls[0], file.location(calls[0])
    if len(call.args) < 2 or any(arg.star or arg.keyword is not None for arg in call.args[:2]):
        raise refuse(f"{here}: what `{file.text(call)}` solves is not written out")
    matrix, right = (arg.value for arg in call.args[:2])
    if not constant(scene.project, file, call, matrix):
        raise refuse(f"{here}: `{file.text(matrix)}` may be another matrix in each step")
    if not _is_matrix(value_of(file, right)):
        raise refuse(f"{here}: the source does not show that `{file.text(right)}` is no vector")
    factor, needed = imports.reach(file, "torch.linalg", "lu_factor")
    solve, more = imports.reach(file, "torch.linalg", "lu_solve")
    name, spelled, kept = cache_of(file, call, factor, "lu_factor")
    inside = (
        Splice(file.path, *file.span(call.func), solve),
        Splice(file.path, *file.outer_span(matrix), f"*{name}({file.text(matrix)})"),
    )
    splices = tuple(dict.fromkeys((*needed, *more, *kept, *inside)))
    where = f"the factors of `{file.text(matrix)}` at {here}, which stays the same"
    return Target(here, "off", lambda value: splices, where, f"{spelled} on {factor}", "close")


def _is_matrix(node: cst.BaseExpression) -> bool:
    """Whether an expression is a matrix or several: turned, or with one more dimension."""
    if isinstance(node, cst.Attribute):
        return node.attr.value in TURNED
    if isinstance(node, cst.Call):
        return isinstance(node.func, cst.Attribute) and node.func.attr.value in TURNS
    indices = [each.slice for each in node.slice] if isinstance(node, cst.Subscript) else []
    return any(isinstance(each, cst.Index) and literal(each.value) is None for each in indices)
