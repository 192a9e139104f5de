"""Which variables, attributes and elements a part of the source gives a value, adds to or fills."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import libcst as cst

from trainflash.knobs.effects import changes
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import given_to, is_name
from trainflash.knobs.reading.python_source import ASSIGNS, SCOPES, PythonFile, clauses, descendants, targets_of
from trainflash.knobs.reading.tree import children, issubclass_of

MAKES = (cst.Dict, cst.List, cst.DictComp, cst.ListComp)
MAKERS = {"Counter", "array", "defaultdict", "dict", "empty", "full", "list", "ones", "zeros"}


@functools.lru_cache(maxsize=4096)  # own: the functions of some hundred files
def bound(part: cst.CSTNode) -> frozenset[str]:
    """Variables that `part` gives a value, those of functions and comprehensions inside it left out."""
    found: set[str] = set()
    todo = [part]
    while todo:
        node = todo.pop()
        if isinstance(node, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr, cst.For, cst.AsName)):
            target = node.name if isinstance(node, cst.AsName) else node.target
            found |= unpacked(target)
        todo += [child for child in children(node) if not issubclass_of(type(child), (*SCOPES, cst.BaseComp))]
    return frozenset(found)


def unpacked(target: cst.CSTNode) -> set[str]:
    """Variables that an assignment to `target` gives a value."""
    if isinstance(target, (cst.Tuple, cst.List)):
        return {name for each in target.elements for name in unpacked(each.value)}
    return {target.value} if isinstance(target, cst.Name) else set()


def added_to(part: cst.CSTNode) -> set[str]:
    """Variables that `part` adds to."""
    return {changes.root(node.target) for node in descendants(part, cst.AugAssign)} - {"", "self", "cls"}  # type: ignore[attr-defined]


def filled(part: cst.CSTNode) -> set[str]:
    """Variables whose elements `part` sets."""
    targets = (node.target for node in descendants(part, cst.AssignTarget) if isinstance(node.target, cst.Subscript))  # type: ignore[attr-defined]
    return {target.value.value for target in targets if isinstance(target.value, cst.Name)}


def has_value_before(file: PythonFile, block: cst.CSTNode, name: str) -> bool:
    """Whether `name` is given a value before `block`, outside the loops that it lies in, or is a parameter."""
    function = file.function_around(block)
    if function is not None and any(param.name.value == name for param in descendants(function.params, cst.Param)):  # type: ignore[attr-defined]
        return True
    around = function.body if function is not None else file.module
    first = file.span([block, *file.loops_around(block)][-1])[0]
    given = (each for each in descendants(around, cst.Assign) if any(gives(target.target, name) for target in each.targets))  # type: ignore[attr-defined]
    return any(file.span(each)[0] < first and isinstance(file.parent(file.parent(each)), (cst.IndentedBlock, cst.Module)) for each in given)  # type: ignore[arg-type]


def gives(target: cst.BaseExpression, name: str) -> bool:
    """Whether an assignment to `target` gives the variable `name` a value."""
    return isinstance(target, (cst.Name, cst.Tuple, cst.List)) and any(each.value == name for each in descendants(target, cst.Name))


def stored(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether `node` is set, added to or collected into here, and its value read for nothing else."""
    below = node
    for up in file.ancestors(node):
        if isinstance(up, (cst.AssignTarget, cst.AsName, cst.Param, cst.NamedExpr)):
            return isinstance(up, (cst.AssignTarget, cst.AsName, cst.Param)) or up.target is below
        if isinstance(up, (cst.AugAssign, cst.AnnAssign, cst.For, cst.CompFor)):
            return up.target is below
        if isinstance(up, cst.Call):
            statement = isinstance(file.parent(up), cst.Expr) and isinstance(up.func, cst.Attribute) and up.func is below
            return statement and changes.writes(up.func.attr.value)  # type: ignore[union-attr]
        if isinstance(up, cst.BinaryOperation):
            assign = file.parent(up)
            return isinstance(assign, cst.Assign) and any(file.text(each.target) == file.text(node) for each in assign.targets)
        if isinstance(up, cst.Subscript) and up.value is not below:
            return False
        if not isinstance(up, (cst.Attribute, cst.Subscript, cst.Tuple, cst.List, cst.Element)):
            return False
        below = up
    return False


def attribute_of(target: cst.BaseExpression) -> str:
    """`x` of `self.x`, `self.x[0]` and `other.x`; empty for variables and parts of them."""
    return next(iter(attributes_of(target)), "")


def attributes_of(target: cst.BaseExpression) -> list[str]:
    """The names of attributes, `x` and `y` of `self.x.y[0].z`: as far as one is asked for right behind the other."""
    found: list[str] = []
    while isinstance(target, (cst.Attribute, cst.Subscript)):
        found = [target.attr.value, *found] if isinstance(target, cst.Attribute) else []
        target = target.value
    return found


def part_of_another(file: PythonFile, node: cst.AssignTarget | cst.AugAssign) -> bool:
    """Whether an assignment changes what this function did not make itself, maybe a parameter's values or its gradient.

    That is an element by a key that is no text, and `grad *= 2` where the name stands for a part of something or for what a loop goes over.
    """
    target = node.target
    if isinstance(target, cst.Name) and isinstance(node, cst.AugAssign):
        return _stands_for_another(file, target)
    if not isinstance(target, cst.Subscript) or not isinstance(target.value, cst.Name):
        return False
    index = target.slice[0].slice
    if isinstance(index, cst.Index) and isinstance(index.value, (cst.BaseString, cst.FormattedString)):
        return False
    function = file.function_around(target) or file.module
    made = given_to(function, target.value.value)
    return not any(made_here(each) for each in made)


def _stands_for_another(file: PythonFile, name: cst.Name) -> bool:
    function = file.function_around(name) or file.module
    loops = [loop for loop in descendants(function, cst.For) if gives(loop.target, name.value)]  # type: ignore[attr-defined]
    counted = (callees.called_name(loop.iter) == "range" for loop in loops if isinstance(loop.iter, cst.Call))  # type: ignore[attr-defined,arg-type]
    return any(isinstance(each, (cst.Attribute, cst.Subscript)) for each in given_to(function, name.value)) or len(loops) > sum(counted)


def made_here(value: cst.BaseExpression) -> bool:
    """Whether a value is a list, a table or an array that is made right there."""
    if isinstance(value, cst.BinaryOperation):
        return made_here(value.left) or made_here(value.right)
    return isinstance(value, MAKES) or (isinstance(value, cst.Call) and callees.called_name(value) in MAKERS)


def read_before_set(file: PythonFile, parts: Sequence[cst.CSTNode], known: set[str]) -> cst.Name | None:
    """The first name in `parts`, which run one after the other, that is read before an assignment among them gives it a value.

    Names in `known` have one before. A name that is only added to (`total += x`) has its value from elsewhere.
    """
    stores = [node for part in parts for node in descendants(part, (*ASSIGNS, cst.For)) if not isinstance(node, cst.AugAssign)]
    targets = [target for node in stores for target in targets_of(node)]
    return _early(file, parts, set(known), targets, set().union(*(unpacked(target) for target in targets)))


def _early(
    file: PythonFile, parts: Sequence[cst.CSTNode], done: set[str], targets: list[cst.BaseExpression], own: set[str]
) -> cst.Name | None:
    for part in parts:
        if isinstance(part, cst.For) and isinstance(part.body, cst.IndentedBlock):
            own_turn = done | unpacked(part.target)
            rest = (part.orelse,) if part.orelse is not None else ()
            found = _early(file, (part.iter, *rest), set(done), targets, own) or _early(file, part.body.body, own_turn, targets, own)
        else:
            found = _waiting(file, part, own - done, targets)
        if found is not None:
            return found
        done |= {name for target in targets if file.inside(target, part) for name in unpacked(target)}
    return None


def _waiting(file: PythonFile, part: cst.CSTNode, names: set[str], targets: list[cst.BaseExpression]) -> cst.Name | None:
    """The first of `names` that `part` reads."""
    inner = {name for node in descendants(part, cst.BaseComp) for clause in clauses(node) for name in unpacked(clause.target)}
    for node in descendants(part, cst.Name):
        waits = node.value in names - inner and is_name(file, node)  # type: ignore[attr-defined,arg-type]
        if waits and not any(file.inside(node, target) for target in targets):
            return node  # type: ignore[return-value]
    return None
