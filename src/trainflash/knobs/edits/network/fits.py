"""Whether a statement about the trained network does what it is meant to: the network is one, and training goes the way that it changes."""

from __future__ import annotations

import re

import libcst as cst

from trainflash.knobs.kinds import ModelStatement
from trainflash.knobs.project import Project
from trainflash.knobs.reading import own_classes
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, dotted

COMPILES = "compile"


def statement(edit: ModelStatement, project: Project, file: PythonFile, call: cst.Call, model: str) -> None:
    """Raises `UsageError` where the network is an object of another kind, has another such method, or is trained past what is changed."""
    method = (re.findall(r"\{model\}\.(\w+)", edit.statement) or [""])[0]
    owner = _owner(project, file, call, model)
    if owner is not None:
        _is_network(project, owner, file, call, model)
    own = own_classes.methods(project, *owner, (method,)) if owner is not None else _unknown(project, method)
    for where, function in own:
        raise refuse(f"{where.location(function)}: `{method}` is a method of the program's own, which does something else")


def _owner(project: Project, file: PythonFile, call: cst.Call, model: str) -> own_classes.Class | None:
    """The program's own class of the network; None where that is not known."""
    if model == "self":
        around = file.class_around(call)
        return None if around is None else (file, around)
    function = file.function_around(call)
    for node in file.nodes:
        if isinstance(node, (cst.Name, cst.Attribute)) and dotted(node) == model and file.function_around(node) is function:
            return own_classes.class_of(project, (file, node), any_class=True)
    return None


def _unknown(project: Project, method: str) -> list[tuple[PythonFile, cst.FunctionDef]]:
    """Methods that the network may have, where nothing is known of its class: of `to` too many classes have one."""
    found = project.functions(method) if method == COMPILES else []
    return [(where, each) for where, each in found if where.class_of(each) is not None]


def _is_network(project: Project, owner: own_classes.Class, file: PythonFile, call: cst.Call, model: str) -> None:
    if not own_classes.of_others(project, *owner):
        raise refuse(f"{file.location(call)}: `{model}` is no network: {owner[1].name.value} has `parameters` of its own")
