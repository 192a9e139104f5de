"""Edits of what a program does to Python's garbage collector: helpers that collect, and settings that make it work more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.statements import taken_away, without_element
from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.effects import collected
from trainflash.knobs.kinds import CollectorSettings, HandedFunction, ReleasedObjects
from trainflash.knobs.reading import callees, sources
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, dotted
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

DEFAULTS = (700, 10, 10)  # of gc.set_threshold up to Python 3.12: https://docs.python.org/3/library/gc.html; later ones are higher
TAKEN_AWAY = "taken away"
ADDS = ("add", "append", "register")  # methods that put a function among others


def released_objects(edit: ReleasedObjects, scene: Scene) -> tuple[Target, ...]:
    """A call that returns a None for each object that it is given, after it collected: the Nones stay."""
    file, call = the_call(edit, scene)
    collected.nobody_needs_collections(scene.project)
    here, given = file.location(call), [arg for arg in call.args if arg.keyword is None and not arg.star and dotted(arg.value)]
    if len(given) != len(call.args):
        raise refuse(f"{here}: `{file.text(call)}` is given more than names")
    if isinstance(file.parent(call), cst.Expr):
        splices = taken_away(file, call)
    else:
        nones = ", ".join("None" for _ in given)
        start, end = file.span(call)
        splices = (Splice(file.path, start, end, nones if _unpacked(file, call, len(given)) else f"[{nones}]"),)
    return (Target(here, None, lambda value: splices, f"`{file.text(call)}` at {here}", TAKEN_AWAY),)


def _unpacked(file: PythonFile, call: cst.Call, count: int) -> bool:
    """Whether an assignment gives each of `count` results, at least two, a target of its own."""
    up = file.parent(call)
    targets = [each.target for each in up.targets] if isinstance(up, cst.Assign) else []
    return count > 1 and bool(targets) and all(isinstance(each, cst.Tuple) and len(each.elements) == count for each in targets)


def collector_settings(edit: CollectorSettings, scene: Scene) -> tuple[Target, ...]:
    """The statement that makes the collector run more often, or tell of what it does. Raises `UsageError` where it is not one alone."""
    found = [(file, call) for file in scene.project.parsed("gc") for call in file.calls if file.full_name(call.func) in edit.calls]
    if not found:
        raise refuse(f"no call of {' or '.join(name.split('.')[-1] for name in edit.calls)}: the collector is as Python sets it")
    if len(found) > 1:
        raise refuse(f"the collector is set at several places: {', '.join(str(file.location(call)) for file, call in found[:4])}")
    file, call = found[0]
    here = file.location(call)
    if file.full_name(call.func) == "gc.set_threshold":
        _lower(scene, file, call)
    for other in scene.project.parsed("gc"):
        for node in other.nodes:
            full = other.full_name(node) if isinstance(node, (cst.Attribute, cst.Name)) else None
            if full in collected.TOLD and not isinstance(other.parent(node), cst.ImportAlias):
                raise refuse(f"{other.location(node)}: `{other.text(node)}` tells of the collections, which would be others")
            if full == "gc.garbage":
                raise refuse(f"{other.location(node)}: gc.garbage is read, which depends on how the collector is set")
    splices = taken_away(file, call)
    return (Target(here, None, lambda value: splices, f"`{file.text(call)}` at {here}", TAKEN_AWAY),)


def _lower(scene: Scene, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` unless the thresholds are known, some lower than Python's own and none higher."""
    here, values = file.location(call), [_number(scene, file, arg) for arg in call.args]
    if not values or any(isinstance(value, bool) or not isinstance(value, int) for value in values):
        raise refuse(f"{here}: what `{file.text(call)}` sets is computed")
    pairs = list(zip(values, DEFAULTS, strict=False))
    if values[0] == 0:
        raise refuse(f"{here}: `{file.text(call)}` switches automatic collections off")
    if any(value > default for value, default in pairs) or all(value == default for value, default in pairs):
        raise refuse(f"{here}: `{file.text(call)}` does not make collections more frequent than Python does")


def _number(scene: Scene, file: PythonFile, arg: cst.Arg) -> Any:
    try:
        source = sources.Resolver(scene.project).source(file, arg.value) if not arg.star and arg.keyword is None else None
    except UsageError:
        return None
    return source.value if source is not None else None


def handed_function(edit: HandedFunction, scene: Scene) -> tuple[Target, ...]:
    """The one place where the function is put among others that the program calls. Raises `UsageError` where there is none, or several."""
    if edit.function == collected.COLLECT:
        collected.nobody_needs_collections(scene.project)
    found = [(file, node) for file in scene.project.parsed(edit.function.split(".")[-1]) for node in _mentions(file, edit.function)]
    if len(found) != 1:
        raise refuse(f"{edit.function} is handed over at {'no place' if not found else 'several places'}")
    file, node = found[0]
    here = file.location(node)
    element = file.parent(node)
    if isinstance(element, cst.Element):
        splices = without_element(file, element)
    else:
        call = file.parent(element) if isinstance(element, cst.Arg) else None
        adds = isinstance(call, cst.Call) and callees.called_name(call) in ADDS and len(call.args) == 1
        if not adds:
            raise refuse(f"{here}: `{file.text(node)}` is not put into a list")
        splices = taken_away(file, call)  # type: ignore[arg-type]
    return (Target(here, None, lambda value: splices, f"`{file.text(node)}` at {here}", TAKEN_AWAY),)


def _mentions(file: PythonFile, function: str) -> Iterator[cst.CSTNode]:
    """Where `function` is named without being called, with the `partial` around it."""
    for node in file.nodes:
        if not isinstance(node, (cst.Attribute, cst.Name)) or file.full_name(node) != function:
            continue
        up = file.parent(node)
        if isinstance(up, (cst.Attribute, cst.ImportAlias)) or (isinstance(up, cst.Call) and up.func is node):
            continue
        call = file.parent(up) if isinstance(up, cst.Arg) else None
        partly = isinstance(call, cst.Call) and file.full_name(call.func) == "functools.partial" and call.args[0] is up
        yield call if partly else node  # type: ignore[misc]
