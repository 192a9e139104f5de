"""Factorise a matrix that never changes once: `torch.linalg.solve(A, B)` becomes `torch.linalg.lu_solve(*_lu_factor(A), B)`.

`_lu_factor = functools.cache(torch.linalg.lu_factor)` keeps the factors of what `kept_calls` can keep. `solve` does the same two steps
inside; it also takes a vector, or several, which `lu_solve` does not, so that the source must show a matrix.
"""

from __future__ import annotations

import re

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.keeping.kept_calls import cache_of, constant, given_in_init
from trainflash.knobs.reading.expressions import given_to, literal, refuse, value_of
from trainflash.knobs.reading.python_source import PythonFile, dotted
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.schema import Location

SOLVE = "torch.linalg.solve"
TURNED = ("T", "mT")  # of several vectors; of one it gives that vector
PLANE = {"eye", "diag"}  # make one matrix
BATCHED = {"stack", "unsqueeze", "expand", "repeat", "diag_embed", "None", "reshape", "view", "bmm"}


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
    solved = value_of(file, right)
    turned = isinstance(solved, cst.Attribute) and solved.attr.value in TURNED
    if not _adds_dimension(solved) and not (turned and _is_one(file, call, matrix)):
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


def _adds_dimension(node: cst.BaseExpression) -> bool:
    """Whether an expression gives each vector a dimension more: `x.unsqueeze(-1)`, `x[..., None]`, `x[:, None]`."""
    if isinstance(node, cst.Call):
        last = node.args[0].value if len(node.args) == 1 else None
        return isinstance(node.func, cst.Attribute) and node.func.attr.value == "unsqueeze" and last is not None and literal(last) == -1
    if not isinstance(node, cst.Subscript) or len(node.slice) < 2:
        return False
    final = node.slice[-1].slice
    return isinstance(final, cst.Index) and literal(final.value) is None


def _is_one(file: PythonFile, call: cst.Call, matrix: cst.BaseExpression) -> bool:
    """Whether the source shows that the matrix is one, and not several."""
    name, owner = dotted(matrix) or "", file.class_around(call)
    if name.startswith("self."):
        values = given_in_init(owner, name.removeprefix("self.")) if owner is not None else []
    else:
        values = given_to(file.module, name)
    words = [set(re.findall(r"\w+", file.text(value))) for value in values]
    return bool(words) and all(each & PLANE and not each & BATCHED for each in words)
