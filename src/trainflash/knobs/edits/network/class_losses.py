"""Losses over classes, a function of torch's or an object: how they are summed, and which targets they ignore."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from trainflash.knobs.edits.keeping.kept_calls import set_once
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callers
from trainflash.knobs.reading.expressions import argument_node, literal, made_as, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, dotted, has_splat, keyword, parameter, string_value

FUNCTION, OBJECT = "torch.nn.functional.cross_entropy", "torch.nn.CrossEntropyLoss"
POSITIONS = {FUNCTION: 4, OBJECT: 2}  # where `ignore_index` stands
PLACED = {FUNCTION: 5, OBJECT: 3}  # arguments without a name, up to `ignore_index`
SUMMED = ("mean", "sum")
SET_LATER = ("reduction", "ignore_index")
IGNORED = "-100"  # torch's own default

Made = tuple[PythonFile, cst.Call]


def made(project: Project, file: PythonFile, call: cst.Call) -> Made | None:
    """The call that says how a loss is computed: `call` itself, or the one that made the object that is called; None for no such loss."""
    if file.full_name(call.func) == FUNCTION:
        return file, call
    where, node = file, call.func if isinstance(call.func, cst.Call) else made_as(file, call.func)
    function = file.function_around(call)
    param = parameter(function, call.func.value) if isinstance(call.func, cst.Name) else None
    if node is None and param is not None and function is not None:
        handed = callers.only_argument(project, file, function, param)
        where, node = (handed[0], made_as(*handed)) if handed is not None else (file, None)
        node = handed[1] if node is None and handed is not None and isinstance(handed[1], cst.Call) else node
    return (where, node) if isinstance(node, cst.Call) and where.full_name(node.func) == OBJECT else None


def summed(project: Project, file: PythonFile, loss: cst.Call) -> None:
    """Raises `UsageError` where a loss is not the sum or the mean over targets that it does not ignore, or not known to be."""
    where, call = _known(project, file, loss)
    if any(has_splat(each, star) for each in (call, loss) for star in ("*", "**")):
        raise refuse(f"{file.location(loss)}: what the loss is given cannot be told")
    placed = sum(arg.keyword is None for arg in call.args)
    reduction = keyword(call, "reduction")
    told = reduction is None or string_value(reduction.value) in SUMMED
    if not told or placed > PLACED[where.full_name(call.func) or ""] or keyword(call, "size_average") or keyword(call, "reduce"):
        raise refuse(f"{where.location(call)}: the loss is not summed over its targets, or is not known to be")
    name = dotted(loss.func) or ""
    if call is not loss and name.startswith("self.") and not set_once(project, name.removeprefix("self."), whole=False):
        raise refuse(f"{file.location(loss)}: `{name}` may be another loss than the one that its class makes")
    if call is not loss:
        for other in project.parsed():
            for node in other.nodes:
                if isinstance(node, cst.Attribute) and node.attr.value in SET_LATER and isinstance(other.parent(node), cst.AssignTarget):
                    raise refuse(f"{other.location(node)}: `{short(other.text(node))}` changes what the loss computes")


def ignored(project: Project, file: PythonFile, loss: cst.Call, early: Callable[[cst.BaseExpression], bool]) -> str:
    """Source of the value that a loss ignores, of what is `early` enough to be read. Raises `UsageError` where there is none."""
    where, call = _known(project, file, loss)
    if call is not loss and not isinstance(loss.func, cst.Call) and early(loss.func):
        return f"{file.text(loss.func)}.ignore_index"
    given = argument_node(where, call, "ignore_index", POSITIONS[where.full_name(call.func) or ""])
    if given is None:
        return IGNORED
    read = type(literal(given)) is int or (isinstance(given, (cst.Name, cst.Attribute)) and where is file and early(given))
    if not read:
        raise refuse(f"{where.location(given)}: `{short(where.text(given))}` is not known in front of the predictions")
    return where.text(given)


def _known(project: Project, file: PythonFile, loss: cst.Call) -> Made:
    found = made(project, file, loss)
    assert found is not None  # asked for when the loss was looked for
    return found
