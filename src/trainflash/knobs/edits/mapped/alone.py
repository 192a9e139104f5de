"""Whether a turn of a loop only makes its result of its rows: nothing is drawn, counted or kept once for each row, nor handed on."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.edits.foreach.apart import begins_anew
from trainflash.knobs.edits.mapped.joins import Turns
from trainflash.knobs.effects import changes, purity
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import is_name, refuse, short
from trainflash.knobs.reading.python_source import ASSIGNS, PythonFile, descendants, dotted, targets_of

LEAVES = (cst.Return, cst.Break, cst.Continue, cst.Yield, cst.Await, cst.NamedExpr, cst.Global, cst.Nonlocal, cst.Raise, cst.Try)
PARTS = (cst.Attribute, cst.Subscript)
FETCHES = {"item", "tolist", "numpy", "cpu", "cuda", "backward", "print", "step", "zero_grad", "nonzero", "unique", "register_hook"}
OUTSIDE = ("random", "numpy", "np", "math", "time", "os", "logging", "scipy", "PIL", "cv2")  # take no mapped tensor, or draw
AGAIN = "is done once for each row"


def only_gives(project: Project, file: PythonFile, turns: Turns) -> None:
    """Raises `UsageError` where a turn does more than to make its result of its rows."""
    for part in turns.parts:
        for node in descendants(part, LEAVES):
            raise refuse(f"{file.location(node)}: `{short(file.text(node))}` belongs to one turn of the loop")
    bound = {name for part in (turns.clause.target, *turns.front) for name in _bound(part)}
    if isinstance(turns.node, cst.For):
        _leaves_nothing(file, turns.node, bound)
        _begins_anew(file, turns, bound)
    for part in turns.parts:
        _changes_nothing(project, file, part, bound)
    for call in _calls(turns):
        _takes_rows(file, call)
    for where, function in _reached(project, file, turns):
        _changes_nothing(project, where, function.body, _bound(function.body) | {each.name.value for each in _params(function)})
        for call in descendants(function.body, cst.Call):
            _takes_rows(where, call)  # type: ignore[arg-type]
        for node in descendants(function.body, (*ASSIGNS, cst.Global, cst.Nonlocal)):
            if isinstance(node, (cst.Global, cst.Nonlocal)) or any(isinstance(target, cst.Attribute) for target in targets_of(node)):
                raise refuse(f"{where.location(node)}: `{short(where.text(node))}` {AGAIN}")
        drawn = purity.first_draw(project, where, function, set())
        if drawn is not None:
            raise refuse(f"{drawn[0].location(drawn[1])}: `{short(drawn[0].text(drawn[1]))}` draws anew for each row")


def _changes_nothing(project: Project, file: PythonFile, part: cst.CSTNode, own: set[str]) -> None:
    outside = {each.value for each in descendants(part, cst.Name) if is_name(file, each)} - own  # type: ignore[attr-defined,arg-type]
    node = changes.changed(project, file, part, outside)
    if node is not None:
        raise refuse(f"{file.location(node)}: `{short(file.text(node))}` changes what others read, which {AGAIN}")


def _takes_rows(file: PythonFile, call: cst.Call) -> None:
    if callees.called_name(call) in FETCHES or (file.full_name(call.func) or "").split(".")[0] in OUTSIDE:
        raise refuse(f"{file.location(call)}: `{short(file.text(call))}` takes no rows of a mapped tensor")


def _bound(part: cst.CSTNode) -> set[str]:
    """Names that `part` gives a value to, or that it is, as the target of a loop."""
    targets = [part] if isinstance(part, (cst.Name, cst.Tuple, cst.List)) else []
    targets += [each for node in descendants(part, ASSIGNS) for each in targets_of(node)]
    return {each.value for target in targets if not isinstance(target, PARTS) for each in descendants(target, cst.Name)}  # type: ignore[attr-defined]


def _params(function: cst.FunctionDef) -> Iterator[cst.Param]:
    return descendants(function.params, cst.Param)  # type: ignore[return-value]


def _leaves_nothing(file: PythonFile, loop: cst.For, bound: set[str]) -> None:
    """Raises `UsageError` where what a turn sets is used outside the loop."""
    for node in descendants(file.function_around(loop) or file.module, cst.Name):
        told = node.value in bound and is_name(file, node) and not file.inside(node, loop)  # type: ignore[attr-defined,arg-type]
        if told and not begins_anew(file, node):  # type: ignore[arg-type]
            raise refuse(f"{file.location(node)}: `{file.text(node)}` is also used outside the loop that sets it")


def _begins_anew(file: PythonFile, turns: Turns, bound: set[str]) -> None:
    """Raises `UsageError` where a turn reads what only the one before has set."""
    known = _bound(turns.clause.target)
    for part in turns.front:
        given = [target for node in descendants(part, ASSIGNS) for target in targets_of(node) if not isinstance(node, cst.AugAssign)]
        for node in descendants(part, cst.Name):
            stored = any(file.inside(node, target) for target in given)
            if node.value in bound - known and is_name(file, node) and not stored:  # type: ignore[attr-defined,arg-type]
                raise refuse(f"{file.location(node)}: `{file.text(node)}` is read before the turn sets it")
        known |= _bound(part)


def _calls(turns: Turns) -> Iterator[cst.Call]:
    for part in turns.parts:
        yield from descendants(part, cst.Call)  # type: ignore[misc]


def _reached(project: Project, file: PythonFile, turns: Turns) -> Iterator[callees.Function]:
    """Functions of the program that a turn may call, those of networks where it calls something that has no such name."""
    starts: list[callees.Function] = []
    for call in _calls(turns):
        found = list(callees.meant(project, file, call))
        named = isinstance(call.func, cst.Name) or (dotted(call.func) or "").startswith("self.")
        network = named and not found and not callees.of_library(project, file, call)
        starts += callees.forwards(project) if network else found
    yield from callees.reached(project, starts)
