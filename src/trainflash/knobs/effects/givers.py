"""What an object or a function was handed, and whoever handed it over changes later: both hold the same thing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from trainflash.knobs.effects import changes, given, outside
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.python_source import ASSIGNS, PythonFile, descendants, dotted, parameter_names, targets_of
from trainflash.knobs.remembered import remembered

Place = tuple[PythonFile, cst.CSTNode]
DEEPEST = 3  # own: functions that hand on what they were handed
MOST = 20  # own: changes of one thing that are looked at


def all_changed(
    project: Project, calls: Iterable[tuple[PythonFile, cst.Call]], read: set[str], but: Iterable[cst.CSTNode] = ()
) -> Iterator[Place]:
    """All such places, as of `changed`."""
    inside = list(but)
    for where, call in calls:
        for arg in call.args:
            for name in _roots(where, arg.value):
                for node in later(project, where, call, name, inside, 0):
                    if not _of_others(node[1], name, read):
                        yield node


def later(project: Project, file: PythonFile, at: cst.CSTNode, name: str, but: list[cst.CSTNode], depth: int) -> Iterator[Place]:
    """Changes of what `name` holds that may come after `at`: behind it, in a loop, or in another function."""
    function = file.function_around(at)
    own = function is not None and (name in parameter_names(function) or name in given.bound(function.body))
    scope = function.body if own else file.module  # type: ignore[union-attr]
    for node in _changes(project, file, scope, name):
        around = file.function_around(node)
        elsewhere = around is not function
        if any(file.inside(node, each) for each in but) or (elsewhere and around is not None and name in _own(around)):
            continue
        if (elsewhere and around is not None) or _behind(project, file, node, at, 0):
            yield file, node
    if own and name in parameter_names(function) and depth < DEEPEST:  # type: ignore[arg-type]
        for where, call in makers(project, file, function):  # type: ignore[arg-type]
            for arg in call.args:
                for root in _roots(where, arg.value):
                    yield from later(project, where, call, root, but, depth + 1)


def _behind(project: Project, file: PythonFile, node: cst.CSTNode, at: cst.CSTNode, depth: int) -> bool:
    """Whether `node`, of the function of `at` or of the module, may run after `at`: behind it, or in a loop that both stand in."""
    around, function = file.function_around(node), file.function_around(at)
    if around is function:
        return file.span(node)[0] > file.span(at)[0] or any(file.inside(at, loop) for loop in file.loops_around(node))
    calls = [call for where, call in makers(project, file, function) if where is file] if function is not None and depth < DEEPEST else []
    if not calls:
        return any(True for _ in file.loops_around(node))
    return any(_behind(project, file, node, call, depth + 1) for call in calls)


def makers(project: Project, file: PythonFile, function: cst.FunctionDef) -> list[tuple[PythonFile, cst.Call]]:
    """Calls by the name of `function`; of a constructor, and of what is not called by its name, by its class's."""
    owner = file.class_of(function)
    name = owner.name.value if owner is not None and function.name.value.startswith("__") else function.name.value
    return named(project, name)


@remembered
def named(project: Project, name: str) -> list[tuple[PythonFile, cst.Call]]:
    """Calls by a name, in all files."""
    found = [(where, call) for where in project.parsed(name) for call in where.calls_of(name)]
    return [(where, call) for where, call in found if (where.full_name(call.func) or callees.called_name(call)).split(".")[-1] == name]


@remembered
def _changes(project: Project, file: PythonFile, scope: cst.CSTNode, name: str) -> list[cst.CSTNode]:
    found: list[cst.CSTNode] = []
    while len(found) < MOST and (node := changes.changed(project, file, scope, {name}, but=found)) is not None:
        found.append(node)
    told = (each for each in outside.handed(project, file, scope) if changes.root(each) == name)
    return found + [each for each in told if isinstance(each, cst.CSTNode)]


def _of_others(node: cst.CSTNode, name: str, read: set[str]) -> bool:
    """Whether an assignment sets, or a call is handed, only attributes that nobody reads there."""
    if not isinstance(node, (*ASSIGNS, cst.Attribute, cst.Call)):
        return False
    of_call = [arg.value for arg in node.args] if isinstance(node, cst.Call) else []
    of_call += [node.func.value] if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) else []
    set_there = of_call or ([node] if isinstance(node, cst.Attribute) else targets_of(node))
    own = [given.attributes_of(each) for each in set_there if changes.root(each) == name]
    return bool(own) and all(each and each[0] not in read for each in own)


def _roots(file: PythonFile, value: cst.BaseExpression) -> set[str]:
    """Variables of which an argument is made, unless a call makes something new of them."""
    parts = [value, *(each.value for each in descendants(value, cst.Element))] if isinstance(value, (cst.List, cst.Tuple)) else [value]
    return {
        name for each in parts if dotted(each) is not None and (name := changes.root(each)) and name not in {*file.imported, "self", "cls"}
    }


def _own(function: cst.FunctionDef) -> set[str]:
    return parameter_names(function) | given.bound(function.body)
