"""Which samples an evaluation sees: all that its loader holds, or as many batches as it takes."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.effects.sharing import Shared
from trainflash.knobs.project import Project, is_module
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants
from trainflash.knobs.reading.tree import children
from trainflash.knobs.training import by_batch

TAKES = {"next", "islice", "take"}  # a number of batches


def whole(project: Project, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where what reads the loader that `call` makes stops after some of its batches."""
    for shared, scope in places(project, file, call):
        where = shared.file
        for node in descendants(scope, (cst.For, cst.Call)):
            if isinstance(node, cst.For):
                read = any(shared.holds(each) for each in descendants(node.iter, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)))
                if read:
                    by_batch.nothing(project, where, node)
                for left in _leaving(node.body) if read else ():
                    raise refuse(f"{where.location(left)}: the loop over the loader is left early, so larger batches are more samples")
            elif shared.handed(node) and _counts(node):
                text = f"{where.location(node)}: `{where.text(node)}` takes a number of batches"
                raise refuse(f"{text}, so larger ones are more samples")


def _counts(call: cst.Call) -> bool:
    """Whether a call that is handed the loader takes a number of its batches."""
    name = callees.called_name(call)
    ranges = [arg for arg in call.args if isinstance(arg.value, cst.Call) and callees.called_name(arg.value) == "range"]
    return name in TAKES or (name == "zip" and bool(ranges))


def _leaving(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """`break` and `return` that leave the loop."""
    if isinstance(node, (cst.FunctionDef, cst.Lambda)):
        return
    if isinstance(node, cst.Return):
        yield node
    if isinstance(node, (cst.For, cst.While)):
        yield from descendants(node, cst.Return)
        return
    if isinstance(node, cst.Break):
        yield node
    for child in children(node):
        yield from _leaving(child)


def places(project: Project, file: PythonFile, call: cst.Call) -> Iterator[tuple[Shared, cst.CSTNode]]:
    """Each function and module that gets what `call` makes, with what it is called there."""
    todo: list[tuple[Shared, cst.CSTNode]] = [(Shared(project, file, set(), frozenset({id(call)})), _scope(file, call))]
    seen = set()
    while todo:
        held, scope = todo.pop(0)
        key = (id(scope), frozenset(held.names), held.seeds)
        if key in seen:
            continue
        seen.add(key)
        shared = held.within(scope)
        batches = [node.target for node in descendants(scope, (cst.For, cst.CompFor)) if shared.holds(node.iter)]
        shared.names -= {name.value for target in batches for name in descendants(target, cst.Name)} - held.names
        yield shared, scope
        todo += _handed_on(shared, scope)
        todo += _attributes(shared, scope)
        if isinstance(scope, cst.FunctionDef):
            todo += _returned(shared, scope)
        if isinstance(scope, cst.Module):
            todo += _imported(shared)


def _scope(file: PythonFile, node: cst.CSTNode) -> cst.CSTNode:
    return next(up for up in file.ancestors(node) if isinstance(up, (cst.FunctionDef, cst.Module)))


def _handed_on(shared: Shared, scope: cst.CSTNode) -> Iterator[tuple[Shared, cst.CSTNode]]:
    for call in descendants(scope, cst.Call):
        if shared.handed(call):
            found = list(callees.meant(shared.project, shared.file, call))
            for where, function, names in shared.taken(call, found):
                yield Shared(shared.project, where, set(names)), function


def _attributes(shared: Shared, scope: cst.CSTNode) -> Iterator[tuple[Shared, cst.CSTNode]]:
    """The other methods of an object that keeps it."""
    kept = {name for name in shared.names if name.startswith("self.")}
    owner = shared.file.class_of(scope) if isinstance(scope, cst.FunctionDef) and kept else None
    for method in owner.body.body if owner is not None else ():
        if isinstance(method, cst.FunctionDef):
            yield Shared(shared.project, shared.file, set(kept)), method


def _returned(shared: Shared, function: cst.FunctionDef) -> Iterator[tuple[Shared, cst.CSTNode]]:
    """Its callers, where the function returns it; of a tuple that both write out only its place."""
    values = [node.value for node in descendants(function.body, cst.Return) if node.value is not None]
    given = [value for value in values if shared.holds(value) or shared.wraps(value)]
    for where, call in callers.sites(shared.project, shared.file, function) if given else ():
        names = _unpacked(shared, where, call, given)
        seeds = frozenset({id(call)}) if names is None else frozenset()
        yield Shared(shared.project, where, names or set(), seeds), _scope(where, call)


def _unpacked(shared: Shared, where: PythonFile, call: cst.Call, given: list[cst.BaseExpression]) -> set[str] | None:
    assign = where.parent(call)
    target = assign.targets[0].target if isinstance(assign, cst.Assign) else None
    if not isinstance(target, cst.Tuple) or not all(isinstance(value, cst.Tuple) for value in given):
        return None
    names: set[str] = set()
    for value in given:
        if len(value.elements) != len(target.elements):  # type: ignore[attr-defined]
            return None
        pairs = zip(value.elements, target.elements, strict=True)  # type: ignore[attr-defined]
        names |= {where.text(place.value) for element, place in pairs if shared.holds(element.value)}
    return names


def _imported(shared: Shared) -> Iterator[tuple[Shared, cst.CSTNode]]:
    """Files that import a variable of the module."""
    for name in [each for each in shared.names if each.isidentifier()]:
        for where in shared.project.parsed(name):
            for local, full in where.imported.items():
                module, _, last = full.rpartition(".")
                if last == name and where is not shared.file and is_module(shared.file.path, module):
                    yield Shared(shared.project, where, {local}), where.module
