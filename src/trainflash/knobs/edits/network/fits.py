"""Whether a statement about the trained network does what it is meant to: the network is one, and training goes the way that it changes."""

from __future__ import annotations

import re

import libcst as cst

from trainflash.knobs.edits.network import flat_views
from trainflash.knobs.kinds import ModelStatement
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, own_classes
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted

COMPILES = "compile"
TRAINER = "training_step"  # what Lightning calls instead of the network


def statement(edit: ModelStatement, project: Project, file: PythonFile, call: cst.Call, model: str) -> None:
    """Raises `UsageError` where the network is an object of another kind, has another such method, or is trained past what is changed."""
    method = (re.findall(r"\{model\}\.(\w+)", edit.statement) or [""])[0]
    owner = _owner(project, file, call, model)
    if owner is not None:
        _is_network(project, owner, file, call, model)
    own = own_classes.methods(project, *owner, (method,)) if owner is not None else _unknown(project, method)
    for where, function in own:
        raise refuse(f"{where.location(function)}: `{method}` is a method of the program's own, which does something else")
    if method == COMPILES and owner is not None:
        _goes_through_call(project, owner, file, call, model)
    if "channels_last" in edit.statement:
        flat_views.none(project)


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


def _goes_through_call(project: Project, owner: own_classes.Class, file: PythonFile, call: cst.Call, model: str) -> None:
    """Raises `UsageError` where the network is never called itself, only methods of it: those are not compiled."""
    methods = own_classes.methods(project, *owner)
    if any(dotted(each.func) == "self" for _, method in methods for each in descendants(method, cst.Call)):  # type: ignore[attr-defined]
        return
    names = {method.name.value for _, method in methods}
    if model == "self":
        if TRAINER in names or ("forward" not in names and own_classes.of_others(project, *owner) == {"Module"}):
            raise refuse(f"{file.location(call)}: training does not call `{owner[1].name.value}` itself, so nothing would be compiled")
        return
    past = None
    for where, node in _uses(project, model.split(".")[-1]):
        up = where.parent(node)
        if isinstance(up, (cst.AssignTarget, cst.Param, cst.AnnAssign)) or _printed(where, up):
            continue
        if not isinstance(up, cst.Attribute) or up.value is not node:
            return
        around = where.parent(up)
        if isinstance(around, cst.Call) and around.func is up and up.attr.value in names:
            past = past or (where, around)
    if past is not None:
        where, around = past
        raise refuse(f"{where.location(around)}: `{model}` is never called itself, only its methods, so nothing would be compiled")


def _uses(project: Project, tail: str) -> list[tuple[PythonFile, cst.CSTNode]]:
    """Places that name something `tail`, or an attribute of that name; not keywords of calls, nor names in imports."""
    found: list[tuple[PythonFile, cst.CSTNode]] = []
    for file in project.parsed(tail):
        for node in file.nodes:
            if isinstance(node, cst.Attribute) and node.attr.value == tail:
                found.append((file, node))
            elif isinstance(node, cst.Name) and node.value == tail:
                up = file.parent(node)
                named = (isinstance(up, cst.Attribute) and up.attr is node) or (isinstance(up, cst.Arg) and up.keyword is node)
                found += [] if named or isinstance(up, cst.ImportAlias) else [(file, node)]
    return found


def _printed(file: PythonFile, up: cst.CSTNode | None) -> bool:
    call = file.parent(up) if isinstance(up, cst.Arg) else None
    return isinstance(call, cst.Call) and callees.called_name(call) == "print"
