"""What calls change beyond themselves: what they are handed, objects whose methods nobody knows, variables of a module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from trainflash.knobs.effects import changes, given, sharing, writers
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.callees import Function
from trainflash.knobs.reading.expressions import is_name
from trainflash.knobs.reading.python_source import PythonFile, descendants, parameter_names
from trainflash.knobs.remembered import listed, remembered

KEPT = {"close", "eval", "flush", "train"}  # change nothing that is read: files, and the mode, which goes with what needs it


@listed
def handed(project: Project, file: PythonFile, part: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """Arguments that a call in `part` changes, and objects that it is a method of where nobody knows it and nothing takes its result."""
    for call in descendants(part, cst.Call):
        if isinstance(call.func, cst.Attribute) and _for_what_it_does(project, file, call):  # type: ignore[attr-defined]
            yield call.func.value  # type: ignore[attr-defined]
        for arg in call.args:  # type: ignore[attr-defined]
            if changes.root(arg.value) and _changed(project, file, call, arg.value):  # type: ignore[arg-type]
                yield arg.value


def variables(project: Project, reached: Iterable[Function]) -> Iterator[tuple[PythonFile, str]]:
    """Variables of a module that functions set or change."""
    for where, function in reached:
        declared = {item.name.value for node in descendants(function.body, cst.Global) for item in node.names}  # type: ignore[attr-defined]
        known = given.bound(where.module) - set(where.imported)
        own = given.bound(function.body) | parameter_names(function)
        for name in sorted(declared & given.bound(function.body)):
            yield where, name
        for name in sorted({each.value for each in descendants(function.body, cst.Name)} & known - (own - declared)):  # type: ignore[attr-defined]
            if changes.changed(project, where, function.body, {name}) is not None or any(
                changes.root(each) == name for each in handed(project, where, function.body)
            ):
                yield where, name


def reads(project: Project, file: PythonFile, name: str) -> Iterator[tuple[PythonFile, cst.BaseExpression]]:
    """Where a variable of a module is read, in its file or through what other files import."""
    for where in project.parsed(name):
        for node in where.nodes:
            mine = isinstance(node, cst.Name) and node.value == name and (where is file or name in where.imported)
            of_module = isinstance(node, cst.Attribute) and node.attr.value == name and where is not file
            if (of_module or (mine and is_name(where, node))) and not given.stored(where, node):
                yield where, node  # type: ignore[misc]


def _for_what_it_does(project: Project, file: PythonFile, call: cst.Call) -> bool:
    """Whether a method of an object that nobody knows is called, and nothing takes its result: it may change the object."""
    known = callees.of_library(project, file, call) or bool(callees.meant(project, file, call))
    return not known and writers.for_effect(file, call) and callees.called_name(call) not in KEPT


@remembered
def _changed(project: Project, file: PythonFile, call: cst.Call, value: cst.BaseExpression) -> bool:
    held = sharing.Shared(project, file, set(), frozenset({id(value)}))
    return changes.by_call(call, held)
