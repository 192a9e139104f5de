"""What a list holds that a function makes of its samples: by a comprehension, by `append`, or by `zip(*batch)`."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.reading.expressions import given_to, literal
from trainflash.knobs.reading.python_source import PythonFile, base_names, descendants, dotted, sole

DEEPEST = 4  # own: names between a list and what makes it
DRAWS = ("sample", "choices")  # methods that give a list of samples


@dataclass(frozen=True)
class Listed:
    """An entry of the list: the expression `node`, and the `key` of the sample that it is. `sampled`: there is one for each sample."""

    file: PythonFile
    node: cst.BaseExpression | None
    key: int | str | None = None
    sampled: bool = False


def entries(file: PythonFile, whole: cst.BaseExpression, depth: int = 0) -> list[Listed] | None:
    """The expressions that all entries of the list `whole` come from; None where the source does not show them."""
    if depth > DEEPEST:
        return None
    if isinstance(whole, cst.ListComp):
        return _comprehension(file, whole, depth)
    if isinstance(whole, (cst.List, cst.Tuple)):
        plain = bool(whole.elements) and not any(isinstance(each, cst.StarredElement) for each in whole.elements)
        return [Listed(file, each.value) for each in whole.elements] if plain else None
    if isinstance(whole, cst.Call) and dotted(whole.func) in ("list", "tuple") and len(whole.args) == 1:
        inner = whole.args[0].value
        return _comprehension(file, inner, depth) if isinstance(inner, cst.GeneratorExp) else entries(file, inner, depth + 1)
    if isinstance(whole, cst.Attribute):
        return _field(file, whole)
    return _named(file, whole, depth) if isinstance(whole, cst.Name) else None


def _field(file: PythonFile, whole: cst.Attribute) -> list[Listed] | None:
    """The entries of `batch.state` where `batch = Transition(*zip(*samples))`, of a named tuple that the file defines."""
    around = file.function_around(whole)
    made = given_to(around, whole.value.value) if around is not None and isinstance(whole.value, cst.Name) else []
    if len(made) != 1 or not isinstance(call := made[0], cst.Call) or len(call.args) != 1 or call.args[0].star != "*":
        return None
    names = _fields_of(file, call.func)
    if whole.attr.value not in names or not _is_transposed(file, call.args[0].value):
        return None
    return [Listed(file, None, names.index(whole.attr.value), sampled=True)]


def _fields_of(file: PythonFile, made: cst.BaseExpression) -> list[str]:
    """Names of the parts of a named tuple; empty for anything else."""
    if not isinstance(made, cst.Name):
        return []
    for value in given_to(file.module, made.value):
        if isinstance(value, cst.Call) and (file.full_name(value.func) or "").split(".")[-1] == "namedtuple" and len(value.args) == 2:
            listed = literal(value.args[1].value)
            return listed.replace(",", " ").split() if isinstance(listed, str) else [str(each) for each in listed or ()]
    for owner in (each for each in file.module.body if isinstance(each, cst.ClassDef) and each.name.value == made.value):
        rows = [sole(row) for row in owner.body.body] if "NamedTuple" in base_names(owner) else []
        return [dotted(each.target) or "" for each in rows if isinstance(each, cst.AnnAssign)]
    return []


def _comprehension(file: PythonFile, whole: cst.ListComp | cst.GeneratorExp, depth: int) -> list[Listed] | None:
    if whole.for_in.inner_for_in is not None:
        return None
    entry = whole.elt
    while isinstance(entry, cst.Call) and dotted(entry.func) in ("list", "tuple") and len(entry.args) == 1:
        entry = entry.args[0].value  # the same numbers, in rows
    if isinstance(entry, cst.Name):  # an entry of another list, as it is
        again = entries(file, whole.for_in.iter, depth + 1) if dotted(whole.for_in.target) == entry.value else None
        if again is not None:
            return again
    sampled = not whole.for_in.ifs and is_samples(file, whole.for_in.iter)
    return [Listed(file, entry, _key(entry, whole.for_in.target) if sampled else None, sampled)]


def _named(file: PythonFile, name: cst.Name, depth: int) -> list[Listed] | None:
    around = file.function_around(name) or file.module
    part = _transposed(file, around, name.value)
    if part is not None:
        return [part]
    values, added = given_to(around, name.value), _appended(file, around, name.value)
    if len(values) != 1 or _otherwise(file, around, name.value, added):
        return None
    if not added:
        return entries(file, values[0], depth + 1)
    empty = isinstance(values[0], cst.List) and not values[0].elements
    return [_added(file, call) for call in added] if empty else None


def _appended(file: PythonFile, around: cst.CSTNode, name: str) -> list[cst.Call]:
    return [call for call in descendants(around, cst.Call) if dotted(call.func) == f"{name}.append" and len(call.args) == 1]  # type: ignore[misc,attr-defined]


def _added(file: PythonFile, call: cst.Call) -> Listed:
    node = call.args[0].value
    loop = next(file.loops_around(call), None)
    sampled = isinstance(loop, cst.For) and is_samples(file, loop.iter) and file.parent(file.statement(call)) is loop.body  # type: ignore[arg-type]
    return Listed(file, node, _key(node, loop.target) if sampled else None, sampled)  # type: ignore[union-attr]


def _otherwise(file: PythonFile, around: cst.CSTNode, name: str, added: list[cst.Call]) -> bool:
    """Whether `name` is changed by anything else than its assignment and the calls `added`."""
    for node in descendants(around, (cst.Name, cst.AugAssign)):
        if isinstance(node, cst.AugAssign):
            if name in {each.value for each in descendants(node.target, cst.Name)}:  # type: ignore[attr-defined]
                return True
            continue
        if node.value != name:  # type: ignore[attr-defined]
            continue
        up = file.parent(node)
        if isinstance(up, cst.Attribute) and up.value is node and not any(call.func is up for call in added):
            return True
        if isinstance(up, cst.Subscript) and up.value is node and isinstance(file.parent(up), (cst.AssignTarget, cst.Del)):
            return True
        if isinstance(up, (cst.For, cst.CompFor)) and up.target is node:
            return True
        if isinstance(up, cst.Element) and _unpacked(file, file.parent(file.parent(up))):  # type: ignore[arg-type]
            return True
    return False


def _unpacked(file: PythonFile, target: cst.CSTNode | None) -> bool:
    """Whether `target` gives its names what is not written out for each of them: `a, b = f()`, and not `a, b = [], []`."""
    if isinstance(target, (cst.For, cst.CompFor)):
        return True
    assign = file.parent(target) if isinstance(target, cst.AssignTarget) else None
    return isinstance(assign, cst.Assign) and not isinstance(assign.value, (cst.Tuple, cst.List))


def _transposed(file: PythonFile, around: cst.CSTNode, name: str) -> Listed | None:
    """The entry of `name` in `xs, ys = zip(*batch)`, where nothing else gives it a value."""
    found = []
    for assign in descendants(around, cst.Assign):
        for target in (each.target for each in assign.targets):  # type: ignore[attr-defined]
            parts = [part.value for part in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else []
            places = [number for number, part in enumerate(parts) if dotted(part) == name]
            if places:
                found.append((places[0], assign.value))  # type: ignore[attr-defined]
    if len(found) != 1 or given_to(around, name):
        return None
    place, value = found[0]
    while isinstance(value, cst.Call) and dotted(value.func) in ("list", "tuple", "map") and value.args:
        value = value.args[-1].value
    return Listed(file, None, place, sampled=True) if _is_transposed(file, value) else None


def _is_transposed(file: PythonFile, value: cst.BaseExpression) -> bool:
    """Whether it is `zip(*samples)`."""
    starred = isinstance(value, cst.Call) and dotted(value.func) == "zip" and len(value.args) == 1 and value.args[0].star == "*"
    return starred and is_samples(file, value.args[0].value)  # type: ignore[attr-defined]


def is_samples(file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether `node` is the batch of samples that a function is given, or one that it draws."""
    if isinstance(node, cst.Call):
        return isinstance(node.func, cst.Attribute) and node.func.attr.value in DRAWS
    function = file.function_around(node)
    if not isinstance(node, cst.Name) or function is None:
        return False
    values = given_to(function, node.value)
    if values:
        return len(values) == 1 and isinstance(values[0], cst.Call) and is_samples(file, values[0])
    given = [param.name.value for param in function.params.params]
    return node.value in given[1 if file.class_of(function) is not None else 0 :]


def _key(node: cst.BaseExpression, target: cst.BaseExpression) -> int | str | None:
    """Which part of the sample `target` the expression `node` is."""
    if isinstance(target, (cst.Tuple, cst.List)):
        places = [number for number, part in enumerate(target.elements) if dotted(part.value) == dotted(node)]
        return places[0] if places and dotted(node) is not None else None
    if isinstance(node, cst.Attribute) and dotted(node.value) == dotted(target):
        return node.attr.value
    if isinstance(node, cst.Subscript) and dotted(node.value) == dotted(target) and len(node.slice) == 1:
        index = node.slice[0].slice
        key = literal(index.value) if isinstance(index, cst.Index) else None
        return key if isinstance(key, (int, str)) and not isinstance(key, bool) else None
    return None
