"""What samples share with the main process while it makes them itself, and would not with workers: each changes a copy of its own."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.effects import changes, given, givers, outside
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.callees import Function
from trainflash.knobs.reading.expressions import given_to, is_name, passed, refuse, short
from trainflash.knobs.reading.python_source import (
    PythonFile,
    descendants,
    dotted,
    own_method,
    parameter_names,
    sole,
    targets_of,
    unsubscripted,
)
from trainflash.knobs.training import data_sets, worker_copies

ENDS = ("__del__", "__exit__", "__getstate__", "__reduce__", "__setstate__", "close")  # methods that put away what a copy holds itself
EVICTS = {"clear", "move_to_end", "pop", "popitem", "popleft"}

Place = tuple[PythonFile, cst.CSTNode]
Change = tuple[PythonFile, cst.FunctionDef, cst.CSTNode]


def stays_nowhere(project: Project) -> None:
    """Raises `UsageError` where making samples leaves something behind that others read, or that the samples after them go on from."""
    for file, owner in data_sets.classes(project):
        inside = data_sets.sampled(project, file, owner)
        for field, found in _changed(inside).items():
            _read_by_nobody(project, (file, owner), field, found, inside)
            _begins_anew(field, found, inside)
    _no_variables(project, list(callees.reached(project, data_sets.starts(project))))


def _changed(inside: list[Function]) -> dict[str, list[Change]]:
    """Fields of the data set that making a sample changes, and where it does."""
    found: dict[str, list[Change]] = {}
    for file, method in inside:
        for place, target in worker_copies.changes_in(method):
            base = unsubscripted(target)
            if changes.root(base) in ("self", "cls") and isinstance(base, cst.Attribute):
                field = (dotted(base) or "").split(".")
                found.setdefault(field[1] if len(field) > 1 else "", []).append((file, method, place))
    found.pop("", None)
    return found


def _read_by_nobody(
    project: Project, owner: tuple[PythonFile, cst.ClassDef], field: str, found: list[Change], inside: list[Function]
) -> None:
    """Raises `UsageError` where anything but making samples reads the field, or whoever handed it to the data set does."""
    filled = all(worker_copies.fills(*each, f"self.{field}") for each in found)
    for where, node in (*data_sets.readings(project, owner, field), *_lent(project, owner, field)):
        function = where.function_around(node)
        inner = function is not None and any(function is each for _, each in inside)
        ends = function is not None and function.name.value in (*ENDS, "__init__") and where.class_of(function) is not None
        asks = (
            filled
            and function is not None
            and any(worker_copies.asks(each.test, f"self.{field}") for each in descendants(function, cst.If))
        )
        if not (inner or ends or asks):
            file, _, place = found[0]
            told = f"`{short(file.text(place))}` in a sample is read at {where.location(node)}"
            raise refuse(f"{file.location(place)}: {told}, and what a worker changes in its copy is gone with it")


def _lent(project: Project, owner: tuple[PythonFile, cst.ClassDef], field: str) -> Iterator[Place]:
    """Where a variable is read that the data set was handed for `field`, beside the call that hands it over."""
    file, node = owner
    begins = own_method(node, "__init__")
    names = {dotted(value) for value in given_to(begins.body, f"self.{field}")} if begins is not None else set()
    for param in begins.params.params if begins is not None else ():
        for where, call in givers.named(project, node.name.value) if param.name.value in names else ():
            lent = passed(where, call, file, begins, param)  # type: ignore[arg-type]
            if isinstance(lent, cst.Name):
                scope = where.function_around(call) or where.module
                read = [each for each in descendants(scope, cst.Name) if each.value == lent.value and is_name(where, each)]  # type: ignore[attr-defined,arg-type]
                yield from ((where, each) for each in read if not where.inside(each, call) and not given.stored(where, each))  # type: ignore[arg-type]


def _begins_anew(field: str, found: list[Change], inside: list[Function]) -> None:
    """Raises `UsageError` where a sample reads what the sample before it left in the field, and is no cache of what stays the same."""
    moved = [(file, method, place) for file, method, place in found if not worker_copies.fills(file, method, place, f"self.{field}")]
    cache = len(moved) < len(found)
    moved = [each for each in moved if not (cache and _evicts(each[0], each[2]))]
    if not moved:
        return
    for file, method in inside:
        for node in descendants(method.body, cst.Attribute):
            if dotted(node) != f"self.{field}" or any(file.inside(node, place) for where, _, place in found if where is file):
                continue
            if not _set_first(file, method, node, field):
                where, _, place = moved[0]
                told = f"`{short(where.text(place))}` in a sample, which those after it go on from"
                raise refuse(f"{where.location(place)}: {told}, and each worker has a copy of its own")


def _evicts(file: PythonFile, place: cst.CSTNode) -> bool:
    """Whether something is taken out of a cache, or moved in it, and nobody looks at it."""
    if isinstance(place, cst.Call):
        return callees.method_name(place) in EVICTS and isinstance(file.parent(place), cst.Expr)
    return isinstance(place, cst.Del)


def _set_first(file: PythonFile, method: cst.FunctionDef, read: cst.CSTNode, field: str) -> bool:
    """Whether each run of the method gives the field a value before it is read there."""
    for line in method.body.body:
        if file.inside(read, line):
            return False
        node = sole(line)
        if isinstance(node, cst.Assign) and any(dotted(target) == f"self.{field}" for target in targets_of(node)):
            return True
    return False


def _no_variables(project: Project, reached: list[Function]) -> None:
    """Raises `UsageError` where making samples changes a variable of a module that others read."""
    for file, function in reached:
        for name, place in _variables(project, file, function):
            for where, node in outside.reads(project, file, name):
                around = where.function_around(node)
                filled = worker_copies.fills(file, function, place, name) and around is not None
                asked = filled and any(worker_copies.asks(each.test, name) for each in descendants(around, cst.If))  # type: ignore[arg-type,attr-defined]
                if not asked and not any(around is each for _, each in reached) and not _changes_it(where, node):
                    told = f"`{short(file.text(place))}` in a sample is read at {where.location(node)}"
                    raise refuse(f"{file.location(place)}: {told}, and what a worker changes in its copy is gone with it")


def _changes_it(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether a variable is read only to be changed or emptied, such as by `CACHE.clear()`."""
    up = file.parent(node)
    return isinstance(up, cst.Attribute) and up.attr.value in EVICTS and isinstance(file.parent(file.parent(up)), cst.Expr)  # type: ignore[arg-type]


def _variables(project: Project, file: PythonFile, function: cst.FunctionDef) -> Iterator[tuple[str, cst.CSTNode]]:
    """Variables of the module that the function sets or changes, and where."""
    declared = {item.name.value for node in descendants(function.body, cst.Global) for item in node.names}  # type: ignore[attr-defined]
    own = given.bound(function.body) | parameter_names(function)
    for node in descendants(function.body, (cst.Assign, cst.AugAssign, cst.AnnAssign)):
        for target in targets_of(node):
            if isinstance(target, cst.Name) and target.value in declared:
                yield target.value, node
    named = {each.value for each in descendants(function.body, cst.Name) if is_name(file, each)}  # type: ignore[attr-defined,arg-type]
    for name in sorted(named & given.bound(file.module) - set(file.imported) - (own - declared)):
        place = changes.changed(project, file, function.body, {name})
        if place is not None:
            yield name, place
