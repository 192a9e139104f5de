"""A loop that puts each result into its row of a tensor made in front of it, `out[i] = f(x[i])`, or of a part of one, `out[i, j]`."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.edits.mapped.over import counter, everything, sized, taken_by
from trainflash.knobs.reading.expressions import given_to, is_name, literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, sole

MADE = ("torch.zeros", "torch.empty", "torch.ones", "torch.full")
MADE_BY = ("new_zeros", "new_empty", "new_ones", "new_full")
LIKE = ("torch.zeros_like", "torch.empty_like", "torch.ones_like")


@dataclass(frozen=True)
class Placed:
    """Where the results of all turns belong: the text of what holds them, and the dimension of their rows in it.

    `made` is the assignment that makes all of it, which nothing else needs; None where the whole, or a part of it, is filled as it stands.
    """

    whole: str
    dim: int
    made: cst.Assign | None


def placed(file: PythonFile, node: cst.For, target: cst.BaseExpression, *, beside: bool = False) -> Placed:
    """Where the loop puts its results; `beside`: with others in one assignment.

    Raises `UsageError` where it does not fill all of that, row by row.
    """
    here = file.location(node)
    name = dotted(target.value) if isinstance(target, cst.Subscript) else None
    number = counter(file, node)
    found = [taken_by(file, each) for each in descendants(target, cst.Name) if number is not None and each.value == number]  # type: ignore[attr-defined,arg-type]
    if name is None or "." in name or len(found) != 1 or found[0][0] is not target or len(target.slice) != 1 + found[0][1]:  # type: ignore[union-attr]
        raise refuse(f"{here}: `{file.text(target)}` is no row of a tensor")
    dim, before = found[0][1], target.slice[:-1]  # type: ignore[union-attr]
    part = bool(before) and all(isinstance(each.slice, cst.Index) for each in before)
    if not part and not all(everything(each) for each in before):
        raise refuse(f"{here}: `{file.text(target)}` is no row of a tensor")
    owner = file.function_around(node) or file.module
    made = given_to(owner, name)
    assign = file.parent(made[0]) if len(made) == 1 else None
    line = file.statement(made[0]) if len(made) == 1 else None
    if not isinstance(assign, cst.Assign) or line is None or sole(line) is not assign or len(assign.targets) != 1:
        raise refuse(f"{here}: what `{name}` holds in front of the loop is not known")
    if file.span(line)[0] > file.span(node)[0] or not (part or file.parent(line) is file.parent(node)):
        raise refuse(f"{here}: `{name}` is not made in front of the loop")
    begin = file.span(node)[0] if part else file.span(line)[1]
    for each in descendants(owner, cst.Name):
        used = each.value == name and is_name(file, each) and each is not target.value  # type: ignore[attr-defined,arg-type,union-attr]
        if used and begin <= file.span(each)[0] < file.span(node)[1]:
            raise refuse(f"{file.location(each)}: `{name}` is used before the loop has filled it")
    if not _as_many(file, node, made[0], dim):
        raise refuse(f"{here}: whether the loop fills all of `{name}` is not known")
    if not part and (beside or keyword(made[0], "dtype") is not None):  # type: ignore[arg-type]
        return Placed(f"{name}[:]", dim, None)
    if part:
        return Placed(f"{name}[{', '.join(file.text(each).rstrip(', ') for each in before)}]", 0, None)
    return Placed(name, dim, assign)


def _as_many(file: PythonFile, node: cst.For, made: cst.BaseExpression, dim: int) -> bool:
    """Whether the tensor that `made` makes has as many rows as the loop has turns."""
    call: cst.Call = node.iter  # type: ignore[assignment]
    if len(call.args) != 1 or not isinstance(made, cst.Call) or keyword(made, "out") is not None:
        return False
    count, rows = call.args[0].value, (file.text(call.args[0].value), 0)
    counted = dotted(call.func) == "range"
    full = file.full_name(made.func) or ""
    given = [arg.value for arg in made.args if arg.keyword is None]
    if full in LIKE:
        like = (file.text(given[0]), dim) if given else None
        return like is not None and like == (sized(file, count) if counted else rows)
    by_method = isinstance(made.func, cst.Attribute) and made.func.attr.value in MADE_BY
    if full not in MADE and not by_method:
        return False
    if given and isinstance(given[0], (cst.Tuple, cst.List)):
        given = [each.value for each in given[0].elements]
    if len(given) <= dim or any(isinstance(each, cst.StarredElement) for each in given):
        return False
    if not counted:
        return sized(file, given[dim]) == rows
    same = file.text(given[dim]) == file.text(count) and (dotted(count) is not None or literal(count) is not None)
    return same or (sized(file, given[dim]) is not None and sized(file, given[dim]) == sized(file, count))
