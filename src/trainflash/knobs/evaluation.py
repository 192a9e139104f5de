"""Edits of what interrupts training: evaluate without gradients, and do it, checkpoints or logging less often."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from trainflash.knobs import facts, imports, sources, uses
from trainflash.knobs.expressions import refuse
from trainflash.knobs.knob_files import Decorate, Interval
from trainflash.knobs.python_source import PythonFile, decorator_names, descendants, dotted
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.schema import Location

EVALUATES = re.compile(r"(^|_)(eval|evaluate|evaluation|validate|validation|valid|val|test)(_|$)")
HIGHEST = 3  # own: calls that lie between an activity and the condition that guards it


def decorate(edit: Decorate, scene: Scene) -> tuple[Target, ...]:
    """The one function that evaluates: named so or calling `.eval()`, and not training. Raises `UsageError` with the reason otherwise."""
    file, function = _evaluator(scene, edit)
    here = file.location(function)
    bound = any(name in ("staticmethod", "classmethod", "property") for name in decorator_names(file, function))
    module, name = edit.decorator.split("(")[0].rsplit(".", 1)
    spelled, needed = imports.reach(file, module, name)
    start = file.span(function if bound or not function.decorators else function.decorators[0])[0]
    row = file.raw.rfind(b"\n", 0, start) + 1
    indent = file.raw[row:start].decode("utf-8").removeprefix("\ufeff")
    call = edit.decorator[edit.decorator.index("(") :] if "(" in edit.decorator else ""
    splices = (*needed, Splice(file.path, start, start, f"@{spelled}{call}{file.newline}{indent}"))
    return (Target(here, "off", lambda value: splices, f"{function.name.value} at {here}", f"@{spelled}{call}"),)


def _evaluator(scene: Scene, edit: Decorate) -> tuple[PythonFile, cst.FunctionDef]:
    ran = facts.activity(scene.summary, "Eval")
    place = scene.at or (ran.location if ran is not None else None) or (scene.finding.location if scene.finding is not None else None)
    found: list[tuple[PythonFile, cst.FunctionDef]] = []
    reason = ""
    if scene.project.owns(place):
        file = scene.project.python(place.file)  # type: ignore[union-attr]
        function = file.function_at(place)  # type: ignore[arg-type]
        if function is not None:
            reason = _not_evaluating(file, function)
            if not reason:
                found = [(file, function)]
    if not found:
        functions = [(file, function) for file in scene.project.parsed("def ") for function in file.functions]
        found = [(file, function) for file, function in functions if not _not_evaluating(file, function) and _loops(function)]
    if len(found) != 1:
        listed = ", ".join(f"{function.name.value} at {file.location(function)}" for file, function in found[:4])
        raise refuse(": ".join(part for part in ("no single function evaluates and does nothing else", listed, reason) if part))
    file, function = found[0]
    if any(name in edit.equivalent for name in decorator_names(file, function)):
        raise refuse(f"{file.location(function)}: {function.name.value} already runs without gradients")
    for item in descendants(function.body, cst.WithItem):
        called = item.item.func if isinstance(item.item, cst.Call) else item.item
        if file.full_name(called) in edit.equivalent:
            raise refuse(f"{file.location(item)}: {function.name.value} already runs without gradients here")
    return file, function


def _not_evaluating(file: PythonFile, function: cst.FunctionDef) -> str:
    """Why gradients may not be switched off for the whole function; empty when they may."""
    name = function.name.value
    calls = [call for call in descendants(function, cst.Call) if isinstance(call.func, cst.Attribute)]
    called = {call.func.attr.value for call in calls}  # type: ignore[union-attr]
    if name in ("forward", "__call__", "training_step", "compute_loss", "__init__"):
        return f"{name} also runs while training"
    if called & {"backward", "zero_grad", "train_step", "training_step", "fit"} or "requires_grad_" in called:
        return f"{name} also trains"
    if any(isinstance(node, cst.Yield) for node in descendants(function, cst.Yield)):
        return f"{name} is a generator"
    if not EVALUATES.search(name) and "eval" not in called:
        return f"{name} does not say that it evaluates"
    if _calls_trainer(file, function):
        return f"{name} calls a function that trains"
    return ""


def _calls_trainer(file: PythonFile, function: cst.FunctionDef) -> bool:
    names = {(dotted(call.func) or "").split(".")[-1] for call in descendants(function, cst.Call)}
    for other in file.functions:
        if other is not function and other.name.value in names:
            attributes = {call.func.attr.value for call in descendants(other, cst.Call) if isinstance(call.func, cst.Attribute)}
            if attributes & {"backward", "zero_grad"}:
                return True
    return False


def _loops(function: cst.FunctionDef) -> bool:
    return any(True for _ in descendants(function, (cst.For, cst.While)))


def interval(edit: Interval, scene: Scene) -> tuple[Target, ...]:
    """N of the only `… % N` in the condition that guards the activity. Raises `UsageError` when there is none, or more than one."""
    ran = facts.activity(scene.summary, edit.phase)
    place = scene.at or (ran.location if ran is not None else None) or (scene.finding.location if scene.finding is not None else None)
    if not scene.project.owns(place):
        raise refuse("the line that causes it is not in this project's own source")
    file = scene.project.python(place.file)  # type: ignore[union-attr]
    guard = _guard(scene, file, place, 0)  # type: ignore[arg-type]
    if guard is None:
        raise refuse(f"{place}: no condition of the form `step % N == 0` guards it")
    where, number = guard
    here = where.location(number)
    found = sources.Resolver(scene.project).source(where, number)
    if found is None or not isinstance(found.value, int) or isinstance(found.value, bool) or found.value < 1:
        raise refuse(f"{here}: how often it happens is not a number that somebody typed")
    what = f"the interval in the condition at {here}"
    if found.write is not None and not [use for use in found.uses if use.kind != "shown"]:
        return (Target(here, found.value, found.write, f"{what}, from {found.shown}"),)
    start, end = where.outer_span(number)
    text = where.raw[start:end].decode("utf-8")

    def write(value: Any) -> tuple[Splice, ...]:
        factor, rest = divmod(value, found.value)
        if rest or factor < 2:
            raise refuse(f"{what}: {value!r} is no multiple of {found.value!r}, and {found.shown} is shared", "choose a multiple")
        return (Splice(where.path, start, end, f"({text} * {factor})"),)

    return (Target(here, found.value, write, f"{what}, multiplied there because {found.shown} has other readers"),)


def _guard(scene: Scene, file: PythonFile, place: Location, height: int) -> tuple[PythonFile, cst.BaseExpression] | None:
    inner = None
    for node in file.nodes:
        if isinstance(node, cst.If):
            first, last = file.lines_of(node.body)
            if (first <= place.line <= last and _modulo(node.test)) or (file.lines_of(node)[0] == place.line and _modulo(node.test)):
                inner = node
    function = file.function_at(place)
    if inner is not None and (function is None or file.inside(inner, function)):
        numbers = _modulo(inner.test)
        if len(numbers) > 1:
            raise refuse(f"{file.location(inner)}: the condition holds more than one interval")
        return file, numbers[0]
    if function is None or height >= HIGHEST:
        return None
    sites = uses.callers(scene.project, file, function)
    found = [_guard(scene, where, where.location(call), height + 1) for where, call in sites]
    guards = {id(guard[1]): guard for guard in found if guard is not None}
    if len(guards) > 1 or (guards and None in found):
        raise refuse(f"{file.location(function)}: is called under several conditions")
    return next(iter(guards.values()), None)


def _modulo(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    return [node.right for node in descendants(test, cst.BinaryOperation) if isinstance(node.operator, cst.Modulo)]
