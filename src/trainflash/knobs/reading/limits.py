"""What a program itself lets a value be: annotations, declared fields, and what it asserts or raises for.

Everything of the value's name in the program counts that does not forbid the value in force: a limit that this one breaks is another's.
What cannot be read allows everything.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import UNKNOWN, class_values, refuse, same, short
from trainflash.knobs.reading.origins import Source
from trainflash.knobs.reading.python_source import PythonFile, dotted
from trainflash.knobs.reading.uses import only_refuses
from trainflash.knobs.splices import Edit
from trainflash.schema import Location

TYPES: dict[str, type | tuple[type, ...]] = {"int": int, "float": (int, float), "str": str, "bool": bool}
BOUNDS: dict[str, Callable[[Any, Any], bool]] = {
    "ge": operator.ge,
    "gt": operator.gt,
    "le": operator.le,
    "lt": operator.lt,
    "min": operator.ge,
    "max": operator.le,
}
COMPARES: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda value, among: value in among,
    ast.NotIn: lambda value, among: value not in among,
}
ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
DEEPEST = 6  # own: of types that are named after each other
Answer = bool | None  # None: the declaration does not say


@dataclass(frozen=True)
class Limit:
    """One declaration: `text` as it stands at `location`, and whether it allows a value."""

    location: Location
    text: str
    allows: Callable[[Any], Answer]


def within(found: Source | None, name: str, limits: list[Limit]) -> Source | None:
    """`found`, whose writer raises `UsageError` for a value that one of `limits` does not allow."""
    if found is None or found.write is None or found.value is UNKNOWN:
        return found
    write, own = found.write, [limit for limit in limits if limit.allows(found.value) is not False]

    def allowed(value: Any) -> tuple[Edit, ...]:
        for limit in own:
            if limit.allows(value) is False:
                raise refuse(f"{name} cannot be {value!r}: {limit.location} says `{short(limit.text)}`", "choose a value that it allows")
        return write(value)

    return replace(found, write=allowed) if own else found


def of_name(project: Project, name: str) -> list[Limit]:
    """What the program declares and checks about fields, variables and parameters called `name`."""
    return [limit for file in project.parsed(name) for node in file.nodes for limit in _declared(project, file, node, name)]


def is_enumeration(file: PythonFile, owner: cst.ClassDef) -> bool:
    """Whether the class derives from one of `enum`'s."""
    return any((file.full_name(base.value) or "").split(".")[-1].endswith(("Enum", "Flag")) for base in owner.bases)


def _declared(project: Project, file: PythonFile, node: cst.CSTNode, name: str) -> Iterator[Limit]:
    if isinstance(node, (cst.AnnAssign, cst.Param)):
        named = dotted(node.target if isinstance(node, cst.AnnAssign) else node.name) or ""
        if named.split(".")[-1] == name and node.annotation is not None:
            yield from _annotated(project, file, node.annotation)
    elif isinstance(node, cst.ClassDef) and isinstance(node.body, cst.IndentedBlock):
        for value in class_values(node.body, name):
            if isinstance(value, cst.Call) and isinstance(tree := _tree(file.text(value)), ast.Call):
                yield Limit(file.location(value), file.text(value), lambda wanted, tree=tree: _by_call(tree, wanted))
    elif isinstance(node, (cst.Assert, cst.If)):
        tree = _tree(file.text(node.test))
        if tree is not None and (isinstance(node, cst.Assert) or only_refuses(node)):
            meant = isinstance(node, cst.Assert)
            yield Limit(file.location(node), file.text(node.test), lambda value: _as_meant(_truth(tree, name, value), meant=meant))


def _annotated(project: Project, file: PythonFile, annotation: cst.Annotation) -> Iterator[Limit]:
    text = file.text(annotation.annotation)
    tree = _tree(text)
    if tree is not None:
        text = tree.value if isinstance(tree, ast.Constant) and isinstance(tree.value, str) else text
        yield Limit(file.location(annotation), text, lambda value: _by_type(project, tree, value, 0))


def _tree(text: str) -> ast.expr | None:
    try:
        return ast.parse(f"({text})", mode="eval").body
    except (SyntaxError, ValueError):
        return None


# Annotations ------------------------------------------------------------------------------------------------------------------------


def _by_type(project: Project, node: ast.expr, value: Any, depth: int) -> Answer:
    if depth > DEEPEST:
        return None
    if isinstance(node, ast.Constant):
        inner = _tree(node.value) if isinstance(node.value, str) else None
        return value is None if node.value is None else None if inner is None else _by_type(project, inner, value, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _any(_by_type(project, side, value, depth + 1) for side in (node.left, node.right))
    if isinstance(node, ast.Call):
        return _by_call(node, value)
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return _by_generic(project, _tail(node.value), parts, value, depth)
    name = _tail(node)
    return isinstance(value, TYPES[name]) if name in TYPES else _by_named(project, name, value, depth)


def _by_generic(project: Project, name: str, parts: list[ast.expr], value: Any, depth: int) -> Answer:
    if name == "Literal":
        return _among(parts, value)
    if name == "Annotated":
        return _all([_by_type(project, parts[0], value, depth + 1), *(_by_check(part, value) for part in parts[1:])])
    if name in ("Optional", "Union"):
        return (name == "Optional" and value is None) or _any(_by_type(project, part, value, depth + 1) for part in parts)
    return _by_type(project, parts[0], value, depth + 1) if name in ("Final", "ClassVar") else None


def _by_named(project: Project, name: str, value: Any, depth: int) -> Answer:
    """A type that the program names itself: an enumeration's members by name or value, or what is assigned to the name."""
    for file in project.parsed(name):
        for line in file.module.body:
            if isinstance(line, cst.ClassDef) and line.name.value == name and is_enumeration(file, line):
                members = [each for each in ast.parse(file.text(line)).body[0].body if isinstance(each, ast.Assign)]  # type: ignore[attr-defined]
                named = any(isinstance(each.targets[0], ast.Name) and each.targets[0].id == value for each in members)
                return named or _among([each.value for each in members], value)
        for given in class_values(file.module, name):  # type: ignore[arg-type]
            tree = _tree(file.text(given))
            if isinstance(tree, (ast.Subscript, ast.BinOp)):
                return _by_type(project, tree, value, depth + 1)
    return None


def _by_call(call: ast.Call, value: Any) -> Answer:
    """What `Field(ge=0, le=8)`, `field(metadata={"choices": […]})`, `field(validator=in_([…]))`, `conint(le=8)` and the like allow."""
    answers: list[Answer] = []
    for given in call.keywords:
        if given.arg in BOUNDS:
            answers.append(_bound(BOUNDS[given.arg], given.value, value))
        elif given.arg == "choices":
            answers.append(_by_list(given.value, value))
        elif given.arg == "metadata" and isinstance(given.value, ast.Dict):
            pairs = zip(given.value.keys, given.value.values, strict=True)
            answers += [_by_list(held, value) for key, held in pairs if isinstance(key, ast.Constant) and key.value == "choices"]
        elif given.arg == "validator":
            answers.append(_by_check(given.value, value))
    return _all(answers)


def _by_check(node: ast.expr, value: Any) -> Answer:
    """A validator, or what stands behind the type in `Annotated`."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return _all(_by_check(each, value) for each in node.elts)
    if not isinstance(node, ast.Call):
        return None
    name = _tail(node.func).lower()
    if name == "and_":
        return _all(_by_check(each, value) for each in node.args)
    if name == "in_" and node.args:
        return _by_list(node.args[0], value)
    return _bound(BOUNDS[name], node.args[0], value) if name in BOUNDS and node.args else _by_call(node, value)


def _bound(compare: Callable[[Any, Any], bool], node: ast.expr, value: Any) -> Answer:
    end = _value(node, "", None)
    numbers = all(isinstance(each, (int, float)) for each in (end, value))
    return compare(value, end) if numbers else None


def _by_list(node: ast.expr, value: Any) -> Answer:
    return _among(node.elts, value) if isinstance(node, (ast.List, ast.Tuple, ast.Set)) else None


def _among(nodes: list[ast.expr], value: Any) -> Answer:
    listed = [_value(node, "", None) for node in nodes]
    return True if any(same(each, value) for each in listed) else None if UNKNOWN in listed else False


def _tail(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


# Checks -----------------------------------------------------------------------------------------------------------------------------


def _as_meant(said: Answer, *, meant: bool) -> Answer:
    return None if said is None else said is meant


def _truth(node: ast.expr, name: str, value: Any) -> Answer:
    """Whether a condition holds for `value` of `name`; None where that depends on anything else."""
    if isinstance(node, ast.BoolOp):
        parts = [_truth(each, name, value) for each in node.values]
        return _all(parts) if isinstance(node.op, ast.And) else _any(parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _truth(node.operand, name, value)
        return None if inner is None else not inner
    if not isinstance(node, ast.Compare):
        return None
    sides = [_value(each, name, value) for each in (node.left, *node.comparators)]
    pairs = zip(node.ops, sides, sides[1:], strict=False)
    return _all(_compared(COMPARES[type(each)], left, right) for each, left, right in pairs)


def _compared(compare: Callable[[Any, Any], bool], left: Any, right: Any) -> Answer:
    if UNKNOWN in (left, right):
        return None
    try:
        return bool(compare(left, right))
    except TypeError:
        return None


def _value(node: ast.expr, name: str, value: Any) -> Any:
    """A literal, a list of them, simple arithmetic, or what reads `name`; `UNKNOWN` for anything else."""
    if _reads(node, name):
        return value
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        pass
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        sides = [_value(side, name, value) for side in (node.left, node.right)]
        try:
            return UNKNOWN if UNKNOWN in sides else ARITHMETIC[type(node.op)](*sides)
        except (TypeError, ZeroDivisionError):
            return UNKNOWN
    if isinstance(node, ast.Call) and _tail(node.func) == "range" and not node.keywords:
        ends = [_value(each, name, value) for each in node.args]
        return range(*ends) if ends and all(isinstance(each, int) for each in ends) else UNKNOWN
    return UNKNOWN


def _reads(node: ast.expr, name: str) -> bool:
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == name
    return bool(name) and _tail(node) == name


# Three answers ----------------------------------------------------------------------------------------------------------------------


def _all(answers: Iterator[Answer] | list[Answer]) -> Answer:
    told = list(answers)
    return False if False in told else None if None in told or not told else True


def _any(answers: Iterator[Answer] | list[Answer]) -> Answer:
    told = list(answers)
    return True if True in told else None if None in told or not told else False
