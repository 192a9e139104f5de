"""Read a tensor later than in every step: where the value is used, now and then."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits.cadence import kept_reads
from trainflash.knobs.edits.cadence.now_and_then import guarded_in
from trainflash.knobs.effects import changes
from trainflash.knobs.kinds import DeferredRead
from trainflash.knobs.reading.expressions import assigned, is_name, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice


def deferred_read(edit: DeferredRead, scene: Scene) -> tuple[Target, ...]:
    """`x = loss.item()`, `total += loss.item()` or `losses.append(loss.item())` in a loop: the tensor stays, and readers get `float(…)`.

    Sums are kept in float64, as Python's own are, so that printed values stay equal. Raises `UsageError` where the name is read in
    every step anyway, where it is not known who reads it, or where the sum is not of single numbers.
    """
    file, call = _read(scene)
    here = file.location(call)
    small = file.parent(call)
    adds = isinstance(small, cst.AugAssign) and isinstance(small.operator, cst.AddAssign)
    plain = isinstance(small, cst.Assign) and len(small.targets) == 1
    target = small.target if adds else small.targets[0].target if plain else None  # type: ignore[union-attr]
    kept_in = kept_reads.list_of(file, call)
    if not isinstance(target, cst.Name) and kept_in is None:
        raise refuse(f"{here}: `{file.text(call)}` is neither added to a name nor kept in one")
    loop = loop_around(file, call)
    if loop is None:
        raise refuse(f"{here}: is not inside a loop")
    if kept_in is not None:
        return (_kept(scene, file, call, kept_in, loop),)
    assert isinstance(target, cst.Name)
    if adds and str(scene.facts.get("device")).startswith("mps"):
        raise refuse(f"{here}: sums are kept in float64, which this device does not have")
    value = call.func.value  # type: ignore[union-attr]
    if changes.whole_numbers(file, loop, value, target.value):
        raise refuse(f"{here}: `{file.text(value)}` may be a whole number, and would be shown as a fraction")
    reads = _reads(file, target, loop, adds)
    if not reads:
        raise refuse(f"{here}: nothing reads {target.value}")
    for node in reads:
        if isinstance(file.parent(node), cst.FormattedStringExpression) and file.parent(node).equal is not None:  # type: ignore[union-attr]
            raise refuse(f"{file.location(node)}: a text spells the expression itself")
    copied = _copied(scene, file, value, loop)
    splices = [Splice(file.path, *file.span(call), f"{file.text(value)}.detach(){'.double()' if adds else copied}")]
    splices += [Splice(file.path, *file.span(node), f"float({target.value})") for node in reads]
    where = f"{target.value} at {here}, read at {len(reads)} other place{'s' if len(reads) > 1 else ''}"
    return (Target(here, None, lambda value: tuple(splices), where, f"kept as a tensor: {target.value}"),)


def _kept(scene: Scene, file: PythonFile, call: cst.Call, name: cst.Name, loop: cst.For | cst.While) -> Target:
    """`losses.append(loss.item())`: the list keeps tensors, and its readers make them numbers."""
    here, value = file.location(call), call.func.value  # type: ignore[union-attr]
    if changes.whole_numbers(file, loop, value, name.value):
        raise refuse(f"{here}: `{file.text(value)}` may be a whole number, and would be shown as a fraction")
    readers = kept_reads.as_numbers(file, name, loop)
    splices = (Splice(file.path, *file.span(call), f"{file.text(value)}.detach(){_copied(scene, file, value, loop)}"), *readers)
    return Target(here, None, lambda value: splices, f"what {name.value} keeps at {here}", f"kept as tensors: {name.value}")


def _copied(scene: Scene, file: PythonFile, value: cst.BaseExpression, loop: cst.For | cst.While) -> str:
    """A copy, where the loop may change the tensor in place later."""
    own = changes.root(value)
    return ".clone()" if own and changes.changed(scene.project, file, loop.body, {own}) is not None else ""


def _read(scene: Scene) -> tuple[PythonFile, cst.Call]:
    point = scene.facts.get("sync_points")
    place = scene.at or (point.location if point is not None else None)
    if point is not None and scene.at is None and point.call != "item":
        raise refuse(f"the wait is in {point.call}, not in item()")
    if not scene.project.owns(place):
        raise refuse("the line that waits is not in this project's own source")
    file = scene.project.python(place.file)  # type: ignore[union-attr]
    found = [
        call
        for call in file.calls
        if isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "item"
        and file.lines_of(call)[0] <= place.line <= file.lines_of(call)[1]  # type: ignore[union-attr]
    ]
    if len(found) != 1 or found[0].args:
        raise refuse(f"{place}: {'no' if not found else 'more than one'} call of item() at this line")
    return file, found[0]


def loop_around(file: PythonFile, node: cst.CSTNode) -> cst.For | cst.While | None:
    """The innermost loop of the same function."""
    return next(file.loops_around(node), None)


def _reads(file: PythonFile, target: cst.Name, loop: cst.For | cst.While, adds: bool) -> list[cst.Name]:
    """All other readers of the name. Raises `UsageError` for one that runs in every step, and for names that others may set."""
    function = file.function_around(loop)
    scope = function.body if function is not None else file.module
    declared = {item.name.value for node in file.nodes if isinstance(node, (cst.Global, cst.Nonlocal)) for item in node.names}
    if target.value in declared or (function is None and _imported_elsewhere(file, target.value)):
        raise refuse(f"{file.location(target)}: {target.value} is shared with other functions")
    if function is not None and any(param.name.value == target.value for param in descendants(function.params, cst.Param)):
        raise refuse(f"{file.location(function)}: {target.value} begins as what the function is given")
    found, whole = [], []
    for node in descendants(scope, cst.Name):
        if node.value != target.value or node is target or not is_name(file, node):
            continue
        up = file.parent(node)
        value = assigned(file, node)
        if value is not None:
            if not _number(file, value):
                how = "does not begin as a number" if adds else "is also set here, to what may be no number"
                raise refuse(f"{file.location(node)}: {target.value} {how}")
            whole += [node] if isinstance(value, cst.Integer) else []
            continue
        if isinstance(up, cst.AnnAssign) and up.target is node:
            continue  # declared, and not set
        if isinstance(up, (cst.AugAssign, cst.AnnAssign, cst.Element, cst.Param, cst.Del, cst.For, cst.CompFor)) and not _loaded(up, node):
            if isinstance(up, cst.Element) and not _in_target(file, up):
                if file.inside(node, loop) and not guarded_in(file, node, loop):
                    raise refuse(f"{file.location(node)}: {target.value} is read in every step")
                found.append(node)
                continue
            raise refuse(f"{file.location(node)}: {target.value} is also set here")
        if file.inside(node, loop) and not guarded_in(file, node, loop):
            raise refuse(f"{file.location(node)}: {target.value} is read in every step")
        inner = next((up for up in file.ancestors(node) if isinstance(up, (cst.FunctionDef, cst.Lambda))), None)
        if inner is not function:
            raise refuse(f"{file.location(node)}: {target.value} is read in a function of its own, which may run in every step")
        found.append(node)
    early = next((node for node in found if file.inside(node, loop) and file.span(node)[0] < file.span(target)[0]), None)
    if whole and early is not None:
        raise refuse(f"{file.location(early)}: {target.value} may still be the whole number here that it begins as")
    return found


def _number(file: PythonFile, value: cst.BaseExpression) -> bool:
    """Whether a value surely is one that `float` takes: a number, `float(…)`, or infinity and the like of a library."""
    if isinstance(value, cst.UnaryOperation):
        return _number(file, value.expression)
    made = isinstance(value, cst.Call) and file.full_name(value.func) == "float"
    named = isinstance(value, cst.Attribute) and value.attr.value in ("inf", "nan")
    return isinstance(value, (cst.Integer, cst.Float)) or made or named


def _in_target(file: PythonFile, element: cst.CSTNode) -> bool:
    """Whether a part of a tuple is assigned to."""
    below = element
    for up in file.ancestors(element):
        if isinstance(up, (cst.For, cst.CompFor)):
            return up.target is below
        if isinstance(up, (cst.AssignTarget, cst.Del, cst.AsName)):
            return True
        if not isinstance(up, (cst.Tuple, cst.List, cst.Element, cst.StarredElement)):
            return False
        below = up
    return False


def _loaded(up: cst.CSTNode, node: cst.Name) -> bool:
    return isinstance(up, (cst.AugAssign, cst.AnnAssign)) and up.target is not node


def _imported_elsewhere(file: PythonFile, name: str) -> bool:
    return any(
        isinstance(node, cst.Name) and node.value == name and any(isinstance(up, cst.FunctionDef) for up in file.ancestors(node))
        for node in file.nodes
    )
