"""What a mode keeps of the operations that it sees in variables of its module and of its class, where others may read it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.edits.watching.profiles import read_elsewhere
from trainflash.knobs.effects import changes, given, harmless, writers
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import class_values, given_to, is_name, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, methods_of, parameter_names, targets_of

STORES = (cst.Assign, cst.AugAssign, cst.AnnAssign, cst.Del)


def read_by_nobody(project: Project, file: PythonFile, owner: cst.ClassDef) -> None:
    """Raises `UsageError` where a variable that the mode sets or fills, by itself or by a function that it calls, is read elsewhere."""
    methods = [(file, each) for each in methods_of(owner)]
    reached = list(callees.reached(project, methods))
    for where, function in reached:
        for name in _filled(project, where, function):
            if read_elsewhere(project, where, name):
                raise refuse(f"{where.location(function)}: another file may read `{name}`, which the mode fills")
            for node in where.nodes:
                read = isinstance(node, cst.Name) and node.value == name and is_name(where, node) and not given.stored(where, node)
                if read and not any(where.inside(node, each) for other, each in reached if other is where):
                    raise refuse(f"{where.location(node)}: `{name}`, which the mode fills, is read here")
    for name in _of_class(file, owner):
        for where in project.parsed(name):
            for node in where.nodes:
                named = isinstance(node, cst.Attribute) and node.attr.value == name and not given.stored(where, node)
                if named and not where.inside(node, owner):
                    raise refuse(f"{where.location(node)}: `{where.text(node)}`, which the mode fills, is read here")


def _filled(project: Project, file: PythonFile, function: cst.FunctionDef) -> set[str]:
    """Variables of the module that a function sets, or whose objects it may change."""
    outer = {item.name.value for each in descendants(function.body, (cst.Global, cst.Nonlocal)) for item in each.names}  # type: ignore[attr-defined]
    own = parameter_names(function) | given.bound(function.body)
    found = {changes.root(target) for target in _changed(project, file, function)}
    return ({name for name in found - own if given_to(file.module, name)} | outer) - set(file.imported)


def _changed(project: Project, file: PythonFile, function: cst.FunctionDef) -> Iterator[cst.BaseExpression]:
    for node in descendants(function.body, (*STORES, cst.Call)):
        if not isinstance(node, cst.Call):
            yield from (target for target in targets_of(node) if not isinstance(target, cst.Name))
        elif isinstance(node.func, cst.Attribute) and not _only_looks(node) and not callees.of_library(project, file, node):
            yield node.func.value


def _only_looks(call: cst.Call) -> bool:
    name = callees.called_name(call)
    return harmless.method(call) or name in writers.REPORTS or name.startswith(writers.SHOWS)


def _of_class(file: PythonFile, owner: cst.ClassDef) -> set[str]:
    """Attributes of the class itself that its methods set or fill: whoever knows the class reads them."""
    found = set()
    for function in methods_of(owner):
        params = parameter_names(function)
        for node in descendants(function.body, (*STORES, cst.Call)):
            filled = [node.func.value] if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) else targets_of(node)
            for target in filled:
                names = given.attributes_of(target)
                by_class = changes.root(target) in {owner.name.value, "cls"}
                shared = isinstance(owner.body, cst.IndentedBlock) and bool(names) and bool(class_values(owner.body, names[0]))
                if names and (by_class or (shared and changes.root(target) in params)):
                    found.add(names[0])
    return found
