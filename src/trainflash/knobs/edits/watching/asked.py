"""Who asks a profiler for what it recorded: by an allow-list of what may be done with it where it records nothing."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits.watching.profiles import RUNS, bound_to, read_elsewhere
from trainflash.knobs.effects import given
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import is_name, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, parameter_names, placed_parameters

BEARS = {*RUNS, "add_metadata", "add_metadata_json", "preset_metadata_json", "step_num", "__enter__", "__exit__"}
TESTS = (cst.Comparison, cst.If, cst.IfExp, cst.BooleanOperation, cst.UnaryOperation)
DEEPEST = 3  # own: functions that are handed the profiler


def by_nobody(project: Project, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where the profiler that `call` makes is asked for what it recorded, or handed to what is not known."""
    _of(project, file, call, DEEPEST)


def _of(project: Project, file: PythonFile, made: cst.BaseExpression, depth: int) -> None:
    """The same for what the expression `made` gives: a name, an attribute, what a function returns; what nobody takes is asked nothing."""
    up, function = file.parent(made), file.function_around(made)
    if isinstance(up, cst.Return) and function is not None and depth:
        for where, call in callers.results(project, file, function):
            _of(project, where, call, depth - 1)
    bound = bound_to(up)
    if isinstance(up, cst.Assign) and bound is None and len(up.targets) == 1 and isinstance(up.targets[0].target, cst.Attribute):
        bound = up.targets[0].target
    if isinstance(bound, cst.Attribute):
        _of_attribute(project, bound.attr.value)
    if isinstance(bound, cst.Name):
        if function is None and read_elsewhere(project, file, bound.value):
            raise refuse(f"{file.location(made)}: another file may read what {bound.value} recorded")
        _in(project, file, function or file.module, bound.value, bound, DEEPEST)


def _of_attribute(project: Project, name: str) -> None:
    for file in project.parsed(name):
        for node in file.nodes:
            if isinstance(node, cst.Attribute) and node.attr.value == name and not _bears(file, node):
                raise refuse(f"{file.location(node)}: what {file.text(node)} recorded may be read here")


def _bears(file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether nothing is done with the profiler here that it would not bear where it records nothing."""
    up = file.parent(node)
    if isinstance(up, cst.Attribute):
        return up.attr.value in BEARS
    return isinstance(up, (cst.AssignTarget, cst.Param, cst.AsName, *TESTS)) or (isinstance(up, cst.WithItem) and up.asname is None)


def _in(project: Project, file: PythonFile, where: cst.CSTNode, name: str, bound: cst.CSTNode | None, depth: int) -> None:
    for node in descendants(where, cst.Name):
        if node.value != name or node is bound or not is_name(file, node) or _another(file, where, node):  # type: ignore[attr-defined,arg-type]
            continue
        up = file.parent(node)
        if _bears(file, node):  # type: ignore[arg-type]
            continue
        function = file.function_around(node)
        if isinstance(up, cst.Return) and function is not None and depth:
            for other, call in callers.results(project, file, function):
                _of(project, other, call, depth - 1)
            continue
        call = file.parent(up) if isinstance(up, cst.Arg) else None
        taken = list(_taken(project, file, call, up)) if isinstance(call, cst.Call) and depth else []  # type: ignore[arg-type]
        if not taken:
            raise refuse(f"{file.location(node)}: what {name} recorded may be read here")
        for other, function, param in taken:
            _in(project, other, function, param, None, depth - 1)


def _another(file: PythonFile, where: cst.CSTNode, node: cst.CSTNode) -> bool:
    """Whether `node` is a variable of the same name in a function inside `where`."""
    function = file.function_around(node)
    if function is None or function is where or not file.inside(function, where):
        return False
    own = parameter_names(function)
    return node.value in own | given.bound(function.body)  # type: ignore[attr-defined]


def _taken(project: Project, file: PythonFile, call: cst.Call, arg: cst.Arg):
    """Functions of the program that take the argument, each with the name of the parameter."""
    for where, function in callees.meant(project, file, call):
        params = [each.name.value for each in placed_parameters(function)]
        params = params[1:] if where.class_of(function) is not None and params[:1] in (["self"], ["cls"]) else params
        number = next(at for at, each in enumerate(call.args) if each is arg)
        if arg.keyword is not None:
            yield where, function, arg.keyword.value
        elif number < len(params):
            yield where, function, params[number]
