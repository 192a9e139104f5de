"""Every place of the program that names a list, and what it does with the list there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import refuse, short
from trainflash.knobs.reading.python_source import PythonFile, dotted, string_value

READS = ("len", "sorted", "enumerate", "list", "tuple", "set", "frozenset", "sum", "min", "max", "zip", "print", "str", "range")
READS_OF = (
    "torch.tensor", "torch.as_tensor", "torch.LongTensor", "numpy.array", "numpy.asarray", "random.choice", "random.choices",
    "random.sample",
)  # fmt: skip
BY_NAME = ("__dict__", "vars(", "setattr", "pickle")  # ways to an object's attributes that show no name
CHANGED_BY = {"append": "add", "extend": "update", "clear": "clear"}  # what a list does, and the set's word for it


@dataclass(frozen=True)
class ListUse:
    """One place that names the list, and what it does there."""

    file: PythonFile
    node: cst.BaseExpression
    does: str  # made, asked, picked (and asked), added, counted, read or unknown


def list_uses(project: Project, file: PythonFile, searched: cst.Name | cst.Attribute) -> Iterator[ListUse]:
    """Every place of the program that may name the same list. Raises `UsageError` where some cannot be told."""
    if isinstance(searched, cst.Attribute):
        word, owner = searched.attr.value, file.class_around(searched)
        if dotted(searched.value) != "self" or owner is None:
            raise refuse(f"{file.location(searched)}: which object's `{word}` is searched is not known")
        other = next((where for each in BY_NAME for where in project.parsed(each)), None)
        if other is not None:
            raise refuse(f"{other.path}: the program reaches attributes by other ways than their names")
        for where, node in project.each((word,), lambda _, each: _names(each, word)):
            own = isinstance(node, cst.Attribute) and dotted(node.value) == "self" and where.class_around(node) is owner
            does = _does(where, node) if isinstance(node, cst.Attribute) else "unknown"
            if not own and does in ("read", "counted"):
                yield ListUse(where, node, "read")  # of whatever object: the list stays, and so does this
                continue
            if not own:
                raise refuse(f"{where.location(node)}: `{word}` may be named here, too")
            yield ListUse(where, node, _does(where, node))
        return
    scope = file.scope(searched)
    bound = list(scope[searched.value]) if scope is not None else []
    if not bound or not all(hasattr(each, "references") and getattr(each, "node", None) is not None for each in bound):
        raise refuse(f"{file.location(searched)}: where `{searched.value}` is made is not known")
    shared = {item.name.value for node in file.nodes if isinstance(node, (cst.Global, cst.Nonlocal)) for item in node.names}
    if searched.value in shared:
        raise refuse(f"{file.location(searched)}: `{searched.value}` is set by more than one function")
    if any(isinstance(each.node, cst.Param) or isinstance(file.parent(each.node), cst.Param) for each in bound):
        raise refuse(f"{file.location(searched)}: `{searched.value}` is a parameter, and may be anything that holds things")
    if bound[0].scope is file.scope(file.module):
        for where in project.parsed(searched.value):
            if where is not file and any(_names(node, searched.value) or _is(node, searched.value) for node in where.nodes):
                raise refuse(f"{file.location(searched)}: `{searched.value}` may be used in {where.path}, too")
    for each in bound:
        yield ListUse(file, each.node, _does(file, each.node))
    for node in {id(access.node): access.node for each in bound for access in each.references}.values():
        yield ListUse(file, node, _does(file, node))


def _names(node: cst.CSTNode, word: str) -> bool:
    """Whether `node` is an attribute of that name, a name for one, or a declaration in a class."""
    if isinstance(node, cst.Attribute):
        return node.attr.value == word
    if isinstance(node, cst.ClassDef):
        lines = [small for line in node.body.body if isinstance(line, cst.SimpleStatementLine) for small in line.body]
        targets = [each.target for line in lines if isinstance(line, cst.Assign) for each in line.targets]
        return word in [dotted(each) for each in (*targets, *(line.target for line in lines if isinstance(line, cst.AnnAssign)))]
    return isinstance(node, cst.SimpleString) and string_value(node) == word


def _is(node: cst.CSTNode, word: str) -> bool:
    return isinstance(node, cst.Name) and node.value == word


def _does(file: PythonFile, node: cst.CSTNode) -> str:
    """What the program does with the list where `node` names it."""
    up = file.parent(node)
    around = file.parent(up) if up is not None else None
    if isinstance(up, cst.AssignTarget) or (isinstance(up, cst.AnnAssign) and up.target is node):
        return "made"
    if isinstance(up, cst.ComparisonTarget):
        return "asked" if isinstance(up.operator, (cst.In, cst.NotIn)) else "unknown"
    if (isinstance(up, (cst.If, cst.While, cst.IfExp)) and up.test is node) or (
        isinstance(up, cst.UnaryOperation) and isinstance(up.operator, cst.Not)
    ):
        return "asked"
    if isinstance(up, cst.Attribute) and up.value is node:
        alone = isinstance(around, cst.Call) and around.func is up and isinstance(file.parent(around), cst.Expr)
        return "added" if alone and up.attr.value in CHANGED_BY else "read" if up.attr.value in ("index", "count", "copy") else "unknown"
    if isinstance(up, (cst.For, cst.CompFor)) and up.iter is node:
        return "read"
    if isinstance(up, cst.Subscript) and up.value is node:
        if isinstance(around, cst.ComparisonTarget) and isinstance(around.operator, (cst.In, cst.NotIn)):
            return "picked"
        changes = isinstance(around, cst.Attribute) and around.value is up and around.attr.value not in ("index", "count", "copy")
        stored = isinstance(around, (cst.Element, cst.StarredElement)) or (
            isinstance(around, (cst.For, cst.CompFor)) and around.target is up
        )
        return "unknown" if changes or stored or isinstance(around, (cst.AssignTarget, cst.AugAssign, cst.Del)) else "read"
    call = around if isinstance(up, cst.Arg) else None
    if isinstance(call, cst.Call) and not up.star:  # type: ignore[union-attr]
        full = file.full_name(call.func) or ""
        if full == "len":
            return "counted"
        joins = isinstance(call.func, cst.Attribute) and call.func.attr.value == "join"
        return "read" if full in (*READS, *READS_OF) or joins else "unknown"
    return "unknown"


def line_of(use: ListUse) -> str:
    """The statement around a use, for a reader."""
    statement = use.file.statement(use.node)
    return short(use.file.text(statement or use.file.parent(use.node) or use.node))


def value_of(use: ListUse) -> cst.BaseExpression | None:
    """What a use that makes the list gives it."""
    up = use.file.parent(use.node)
    return use.file.parent(up).value if isinstance(up, cst.AssignTarget) else up.value  # type: ignore[union-attr]
