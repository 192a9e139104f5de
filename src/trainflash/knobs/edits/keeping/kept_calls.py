"""Keep the result of a library's call whose arguments never change: `_eigh = functools.cache(torch.linalg.eigh)`, called in its place.

A tensor is a key by its identity. So the arguments must be what the program keeps for good: numbers and texts, names that the module
sets once, attributes that an object gets in `__init__` and that nothing sets or changes later. `.to(device)` makes other tensors, which
are other keys.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.statements import above_outermost
from trainflash.knobs.effects import changes, purity
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import UNKNOWN, assigned, given_to, is_name, literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, methods_of, string_value, unsubscripted
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.schema import Location

LIBRARIES = ("torch", "numpy", "scipy")
TRAINED = ("torch.nn.", "torch.optim.")


def kept_call(scene: Scene, place: Location) -> Target:
    """The outermost such call at a line that was seen to give the same again. Raises `UsageError` where there is none, saying why."""
    if not scene.project.owns(place):
        raise refuse(f"{place} is not in this project's own source")
    file = scene.project.python(place.file)
    lines = [call for call in file.calls if file.lines_of(call)[0] <= place.line <= file.lines_of(call)[1]]
    calls = [call for call in lines if _of_library(file, call)]
    reasons = [(call, _unsteady(scene.project, file, call)) for call in calls]
    steady = [call for call, reason in reasons if reason is None]
    outermost = [call for call in steady if not any(other is not call and file.inside(call, other) for other in steady)]
    if len(outermost) != 1:
        why = "more than one call there could be kept" if outermost else next((reason for _, reason in reasons if reason), None)
        raise refuse(f"{place}: {why or 'the work that repeats is in no function and no call whose result could be kept'}")
    return _target(file, outermost[0])


def _of_library(file: PythonFile, call: cst.Call) -> bool:
    """A function of a library by its full name, which draws nothing, changes nothing and makes more than it is told."""
    full = file.full_name(call.func) or ""
    root, tail = full.split(".")[0], full.split(".")[-1]
    random = full.rpartition(".")[0] in purity.RANDOM_MODULES or tail in purity.RANDOM_TORCH
    known = root in LIBRARIES and root in {name.split(".")[0] for name in file.imported.values()}
    return known and bool(call.args) and not random and not tail.endswith("_") and not full.startswith(TRAINED)


def _unsteady(project: Project, file: PythonFile, call: cst.Call) -> str | None:
    """Why the call may get other arguments in another step, or its result may be changed; None where neither is so."""
    for arg in call.args:
        if arg.star or not constant(project, file, call, arg.value):
            return f"`{file.text(arg)}` may be another object in each step"
    if not any(isinstance(up, cst.FunctionDef) for up in file.ancestors(call)):
        return "it stands in no function"
    at = changes.result_changed(project, [(file, call)])
    return None if at is None else f"what `{file.text(call.func)}` gives is changed at {at}"


def constant(project: Project, file: PythonFile, call: cst.Call, node: cst.BaseExpression) -> bool:
    """Whether `node`, an argument of `call`, is a value or an object that stays the same and is nowhere changed."""
    if literal(node) is not UNKNOWN:
        return True
    if isinstance(node, cst.Tuple):
        return all(constant(project, file, call, element.value) for element in node.elements)
    if isinstance(node, cst.Attribute):
        if dotted(node.value) == "self":
            return _of_object(project, file, call, node.attr.value)
        if (dotted(node) or "").startswith("self."):
            return constant(project, file, call, node.value) and set_once(project, node.attr.value)
        return (file.full_name(node) or "").split(".")[0] in LIBRARIES  # torch.float32
    return isinstance(node, cst.Name) and _of_module(project, file, call, node)


def _of_object(project: Project, file: PythonFile, call: cst.Call, attribute: str) -> bool:
    """Whether `self.attribute` is set in `__init__`, to something that is not trained, and neither set nor changed elsewhere."""
    function = file.function_around(call)
    owner = file.class_of(function) if function is not None else None
    if owner is None or purity.changed_after(project, file, owner, {attribute}) is not None:
        return False
    values = given_in_init(owner, attribute)
    if not values or any(trained(file, value) for value in values):
        return False
    return not any(_changes(where, attribute) for where in project.parsed(attribute))


def set_once(project: Project, field: str, *, whole: bool = True) -> bool:
    """Whether no object of the program is given another value for a field of that name than by a class, or by its `__init__`.

    Without `whole` the value itself may change.
    """
    for where in project.parsed(field):
        for node in where.nodes:
            target = node.target if isinstance(node, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For, cst.NamedExpr)) else None
            for each in descendants(target, cst.Attribute) if target is not None else ():
                around = where.function_around(node)
                begun = around is not None and around.name.value == "__init__" and dotted(each.value) == "self"  # type: ignore[attr-defined]
                inner = isinstance(where.parent(each), cst.Attribute)  # `self.field.other = x` changes what it holds
                if each.attr.value == field and not begun and (whole or not inner):  # type: ignore[attr-defined]
                    return False
    set_by_name = any(True for _ in project.parsed("setattr"))
    return not set_by_name and not (whole and any(_changes(where, field) for where in project.parsed(field)))


def trained(file: PythonFile, value: cst.BaseExpression) -> bool:
    """Whether a value is a parameter, a network or an optimizer of torch's."""
    return isinstance(value, cst.Call) and (file.full_name(value.func) or "").startswith(TRAINED)


def given_in_init(owner: cst.ClassDef, attribute: str) -> list[cst.BaseExpression]:
    """What `self.attribute = …` and `self.register_buffer("attribute", …)` of `__init__` give."""
    found = []
    for init in (each for each in methods_of(owner) if each.name.value == "__init__"):
        found += given_to(init, f"self.{attribute}")
        for call in descendants(init.body, cst.Call):
            named = dotted(call.func) == "self.register_buffer" and len(call.args) > 1
            if named and string_value(call.args[0].value) == attribute:
                found.append(call.args[1].value)
    return found


def _changes(file: PythonFile, attribute: str) -> bool:
    """Whether a file calls a method that changes what is kept in any `.attribute`."""
    for call in file.calls:
        held = unsubscripted(call.func.value) if isinstance(call.func, cst.Attribute) else None
        if isinstance(held, cst.Attribute) and held.attr.value == attribute and changes.writes(call.func.attr.value):  # type: ignore[union-attr]
            return True
    return False


def _of_module(project: Project, file: PythonFile, call: cst.Call, name: cst.Name) -> bool:
    """Whether a name is set once, by the module itself, and what it holds is changed nowhere in the file."""
    scope = file.scope(name)
    found = list(scope[name.value]) if scope is not None else []
    nodes = [node for each in found if (node := getattr(each, "node", None)) is not None]
    if len(nodes) != 1 or any(isinstance(up, (cst.FunctionDef, cst.For, cst.While, cst.With)) for up in file.ancestors(nodes[0])):
        return False
    value = assigned(file, nodes[0])
    declared = {item.name.value for node in file.each(cst.Global) for item in node.names}
    return (
        value is not None
        and not trained(file, value)
        and name.value not in declared
        and changes.changed(project, file, file.module, {name.value}) is None
    )


def _target(file: PythonFile, call: cst.Call) -> Target:
    name, spelled, needed = cached_maker(file, call, typed=_may_be_numbers(file, call))
    edits = (*needed, Splice(file.path, *file.span(call.func), name))

    def write(value: Any) -> tuple[Splice, ...]:
        return edits

    shown = f"{spelled} on {file.text(call.func)}"
    return Target(file.location(call), "off", write, f"`{file.text(call)}` at {file.location(call)}, whose arguments stay the same", shown)


def _may_be_numbers(file: PythonFile, call: cst.Call) -> bool:
    """Whether an argument is a field that one object may have as 0, another as 0.0: neither a buffer nor what a library makes."""
    owner = file.class_around(call)
    if owner is None:
        return False
    buffers = {f"self.{string_value(each.args[0].value)}" for each in descendants(owner, cst.Call) if _registers(each)}  # type: ignore[attr-defined]
    for node in (each for arg in call.args for each in descendants(arg.value, cst.Attribute)):
        name = dotted(node) or ""
        if name.startswith("self.") and name not in buffers:
            values = given_in_init(owner, name.removeprefix("self."))
            libraries = [(file.full_name(each.func) or "").split(".")[0] for each in values if isinstance(each, cst.Call)]
            if not values or len(libraries) < len(values) or not set(libraries) <= set(LIBRARIES):
                return True
    return False


def _registers(call: cst.CSTNode) -> bool:
    return dotted(call.func) == "self.register_buffer" and bool(call.args)  # type: ignore[attr-defined]


def cached_maker(file: PythonFile, call: cst.Call, *, typed: bool = False) -> tuple[str, str, tuple[Splice, ...]]:
    """A name for `functools.cache(…)` of what `call` calls, how that is spelled, and the line of the module that makes it.

    With `typed` arguments that are equal but of two types have results of their own. Raises `UsageError` where the module does not know
    what is called there yet.
    """
    tail = call.func.attr.value if isinstance(call.func, cst.Attribute) else file.text(call.func)
    name = tail.lower() if tail[:1].isupper() else (file.full_name(call.func) or tail).split(".")[-1]
    known_above(file, call.func, above_outermost(file, call))
    return cache_of(file, call, file.text(call.func), name, typed=typed)


def cache_of(file: PythonFile, node: cst.CSTNode, function: str, name: str, *, typed: bool = False) -> tuple[str, str, tuple[Splice, ...]]:
    """`cached_maker` for a `function` that the module knows, above `node`, under `_name` where that is free."""
    spelled, needed = imports.reach(file, "functools", "lru_cache" if typed else "cache")
    spelled += "(maxsize=None, typed=True)" if typed else ""
    name = f"_{name}"
    while any(node.value == name for node in file.each(cst.Name)):
        name += "_kept"
    start = above_outermost(file, node)
    line = f"{name} = {spelled}({function}){file.newline}"
    return name, spelled, (*needed, Splice(file.path, start, start, line + 2 * file.newline))


def known_above(file: PythonFile, node: cst.BaseExpression, offset: int) -> None:
    """Raises `UsageError` where `node`, moved to `offset` in the module, would not find one of its names, or find another thing."""
    module = file.scope(file.module)
    for name in descendants(node, cst.Name):
        scope = file.scope(name)
        found = list(scope[name.value]) if scope is not None and is_name(file, name) else []  # type: ignore[attr-defined,arg-type]
        bound = [each.node for each in found if hasattr(each, "node")]
        if any(each.scope is not module for each in found if hasattr(each, "node")) or any(file.function_around(each) for each in bound):
            raise refuse(f"{file.location(node)}: the module does not know `{name.value}` outside the function")  # type: ignore[attr-defined]
        changing = len(bound) > 1 and not all(isinstance(each, (cst.Import, cst.ImportFrom)) for each in bound)
        if is_name(file, name) and (not found or changing or any(file.span(each)[0] >= offset for each in bound)):  # type: ignore[arg-type]
            raise refuse(f"{file.location(node)}: `{name.value}` is not the same above the function")  # type: ignore[attr-defined]
