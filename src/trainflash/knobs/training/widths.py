"""By which names and numbers a program knows one width: back to where it was typed, and on into parameters, fields and products."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callers
from trainflash.knobs.reading.expressions import given_to, index_of, literal, passed
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, placed_parameters, targets_of

DEEPEST = 6  # own: chains of names that are followed
FUNCTIONS = (cst.FunctionDef, cst.Lambda)
SUMS = (cst.Name, cst.Attribute, cst.BinaryOperation, cst.IfExp)  # a value made of these is a number as long as what it is made of


@dataclass
class Width:
    """Names that hold the width: `(function, name)` of a local one, `(0, name)` of a field or a name of the module; and its numbers."""

    project: Project
    names: set[tuple[int, str]] = field(default_factory=set)
    numbers: set[int] = field(default_factory=set)

    def holds(self, file: PythonFile, node: cst.CSTNode) -> bool:
        """Whether `node` is made of the width: one of its names, or one of its numbers in a product."""
        for each in descendants(node, (cst.Name, cst.Attribute, cst.Integer)):
            if isinstance(each, cst.Integer):
                product = any(isinstance(up, cst.BinaryOperation) and isinstance(up.operator, cst.Multiply) for up in file.ancestors(each))
                if product and literal(each) in self.numbers:
                    return True
            elif _is_read(file, each) and _key(file, each) in self.names:  # type: ignore[arg-type]
                return True
        return False


def of(project: Project, file: PythonFile, node: cst.BaseExpression) -> Width:
    """The width that `node` is."""
    width = Width(project)
    _back(width, file, node, 0)
    before = None
    while before != len(width.names):
        before = len(width.names)
        for where in project.parsed():
            _on(width, where)
    return width


def _key(file: PythonFile, node: cst.Name | cst.Attribute) -> tuple[int, str]:
    """Where a name is known: in its function, or everywhere."""
    if isinstance(node, cst.Attribute):
        return 0, node.attr.value
    scope = file.scope(node)
    places = [each.node for each in (scope[node.value] if scope is not None else ()) if hasattr(each, "node")]
    for place in places:
        function = next((up for up in file.ancestors(place) if isinstance(up, FUNCTIONS)), None)
        if function is not None and not isinstance(place, (cst.Import, cst.ImportFrom)):
            return id(function), node.value
    return 0, node.value


def _is_read(file: PythonFile, node: cst.CSTNode) -> bool:
    up = file.parent(node)
    return not (isinstance(up, cst.Attribute) and up.attr is node) and not (isinstance(up, cst.Arg) and up.keyword is node)


def _back(width: Width, file: PythonFile, node: cst.BaseExpression, depth: int) -> None:
    """Where the width comes from: what its names are assigned, and what callers pass for them."""
    if isinstance(node, cst.Integer):
        width.numbers.add(literal(node))
    if not isinstance(node, (cst.Name, cst.Attribute)) or depth > DEEPEST or _key(file, node) in width.names:
        return
    width.names.add(_key(file, node))
    if isinstance(node, cst.Attribute):
        owner = file.class_around(node)
        for value in given_to(owner, dotted(node) or "") if owner is not None else ():
            _back(width, file, value, depth + 1)
        return
    scope = file.scope(node)
    for place in [each.node for each in (scope[node.value] if scope is not None else ()) if hasattr(each, "node")]:
        up = file.parent(place)
        if isinstance(up, cst.AssignTarget):
            _back(width, file, file.parent(up).value, depth + 1)  # type: ignore[union-attr]
        elif isinstance(up, cst.Param) or isinstance(place, cst.Param):
            _from_callers(width, file, place if isinstance(place, cst.Param) else up, depth)  # type: ignore[arg-type]


def _from_callers(width: Width, file: PythonFile, param: cst.Param, depth: int) -> None:
    function = next(up for up in file.ancestors(param) if isinstance(up, FUNCTIONS))
    if param.default is not None:
        _back(width, file, param.default, depth + 1)
    for where, call in callers.sites(width.project, file, function) if isinstance(function, cst.FunctionDef) else ():
        given = passed(where, call, file, function, param)
        if given is not None:
            _back(width, where, given, depth + 1)


def _on(width: Width, file: PythonFile) -> None:
    """One round of what `file` passes on: assignments, and arguments of the program's own functions and classes."""
    for node in file.nodes:
        if isinstance(node, (cst.Assign, cst.AnnAssign)) and isinstance(node.value, SUMS) and width.holds(file, node.value):
            for target in targets_of(node):
                if isinstance(target, (cst.Name, cst.Attribute)):
                    width.names.add(_key(file, target))
    for call in file.calls:
        name = (dotted(call.func) or "").split(".")[-1]
        given = [(place, arg) for place, arg in enumerate(call.args) if isinstance(arg.value, SUMS) and width.holds(file, arg.value)]
        for where, function in _functions(width.project, name) if given else ():
            params = [*placed_parameters(function), *function.params.kwonly_params]
            for place, arg in given:
                wanted = arg.keyword.value if arg.keyword is not None else None
                for param in params:
                    if param.name.value == wanted or (wanted is None and index_of(where, function, param) == place):
                        width.names.add((id(function), param.name.value))
        if given and _has_fields(width.project, name):
            width.names |= {(0, arg.keyword.value) for _, arg in given if arg.keyword is not None}


def _functions(project: Project, name: str) -> list[tuple[PythonFile, cst.FunctionDef]]:
    """Functions of that name, and the constructor of a class of that name."""
    found = []
    for file in project.parsed(name):
        for function in file.functions:
            owner = file.class_of(function)
            if function.name.value == name or (owner is not None and owner.name.value == name and function.name.value == "__init__"):
                found.append((file, function))
    return found


def _has_fields(project: Project, name: str) -> bool:
    """Whether `name` is a class without a constructor of its own, such as a dataclass."""
    return any(
        isinstance(node, cst.ClassDef) and node.name.value == name for file in project.parsed(f"class {name}") for node in file.nodes
    )
