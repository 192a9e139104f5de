"""Evaluate, save or log less often: N of the condition that guards it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs import facts
from trainflash.knobs.effects import guarded
from trainflash.knobs.kinds import Interval
from trainflash.knobs.reading import callers, sources
from trainflash.knobs.reading.expressions import UNKNOWN, literal, no_place, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import paced, windows
from trainflash.schema import Activity, Location

PART = 0.1  # own: of what a finding costs; an activity that takes less is not its cause
DOES = {"Ckpt": "save", "Eval": "evaluate"}  # what must happen at least once
HIGHEST = 3  # own: calls that lie between an activity and the condition that guards it


def interval(edit: Interval, scene: Scene) -> tuple[Target, ...]:
    """N of the only `… % N` in the condition that guards the activity. Raises `UsageError` when there is none, or more than one."""
    ran = _costly(scene, facts.activity(scene.summary, edit.phase))
    file, place = scene.source("causes it", ran.location if ran is not None else None)
    guard = _guard(scene, file, place, 0)
    costliest = scene.finding.location if scene.finding is not None and scene.at is None else None
    if guard is None and ran is not None and costliest is not None and scene.project.owns(costliest):
        guard = _guard(scene, scene.project.python(costliest.file), costliest, 0)  # `ran` may be a forward that a callback calls
    if guard is None:
        raise no_place(f"{place}: no condition of the form `step % N == 0` guards it")
    where, number, test, body = guard
    here = where.location(number)
    seen = ran.every_steps if ran is not None and scene.at is None else None
    what = f"the interval in the condition at {here}"
    try:
        found = sources.Resolver(scene.project, UNKNOWN if seen is None else round(seen)).source(where, number)
    except UsageError:
        if seen is None or round(seen) < 1 or not paced.worked_out(where, number):
            raise
        return (_within(scene, where, test, _computed(where, number, test, body, round(seen), what), edit.phase),)
    if found is None or not isinstance(found.value, int) or isinstance(found.value, bool) or found.value < 1:
        raise refuse(f"{here}: how often it happens is not a number that somebody typed")
    along = windows.followers(where, test, body, number, found.value)
    along += windows.ends(where, test, number, divided=bool(along))
    last = windows.last_of_window(number, test, found.value)
    typed = [node for node in along if literal(node) == found.value]
    named = {where.location(node).line for node in along if node not in typed}
    others = [use for use in found.readers if not (use.location.file == where.path and use.location.line in named)]

    def anew(value: int) -> tuple[Splice, ...]:
        ends = ((last, value - 1),) if last is not None else ()
        return tuple(Splice(where.path, *where.span(node), repr(new)) for node, new in (*((node, value) for node in typed), *ends))

    if found.write is not None and not others:
        typing = found.write
        typed_in = Target(here, found.value, lambda value: (*typing(value), *anew(value)), f"{what}, from {found.shown}")
        return (_within(scene, where, test, typed_in, edit.phase),)
    places = [number, *(node for node in along if node not in typed)]

    def write(value: Any) -> tuple[Splice, ...]:
        factor, rest = divmod(value, found.value)
        if rest or factor < 2:
            raise refuse(f"{what}: {value!r} is no multiple of {found.value!r}, and {found.shown} is shared", "choose a multiple")
        spans = [where.outer_span(node) for node in places]
        times = [Splice(where.path, *span, f"({where.raw[slice(*span)].decode('utf-8')} * {factor})") for span in spans]
        return (*times, *anew(value))

    shared = Target(here, found.value, write, f"{what}, multiplied there because {found.shown} has other readers")
    return (_within(scene, where, test, shared, edit.phase),)


def _within(scene: Scene, file: PythonFile, test: cst.If, target: Target, phase: str) -> Target:
    """`target`, refused for a number beyond all rounds of its loop, where the source says how many: nothing would be saved or evaluated."""
    most = _rounds(scene, file, test) if phase in DOES else None
    if most is None:
        return target

    def write(value: Any) -> tuple[Any, ...]:
        if value > most:
            raise refuse(f"{target.where}: there are {most} rounds, and none of them would {DOES[phase]} anything")
        return target.write(value)

    return replace(target, write=write)


def _rounds(scene: Scene, file: PythonFile, test: cst.If) -> int | None:
    """How often the loop runs whose variable the condition asks for: N of `range(N)`; None where that is not typed somewhere."""
    for loop in file.loops_around(test):
        asked = isinstance(loop, cst.For) and dotted(loop.target) in {each.value for each in descendants(test.test, cst.Name)}  # type: ignore[attr-defined]
        if asked and isinstance(loop.iter, cst.Call) and dotted(loop.iter.func) == "range" and loop.iter.args:
            last = loop.iter.args[1 if len(loop.iter.args) > 1 else 0].value
            found = sources.known(scene.project, file, last)
            return found.value if found is not None and type(found.value) is int else None
    return None


def _costly(scene: Scene, ran: Activity | None) -> Activity | None:
    """`ran`, unless it takes a small part of what the finding costs, which names another line then."""
    finding = scene.finding
    if ran is None or finding is None or finding.location is None:
        return ran
    return ran if ran.count * ran.mean_ms / 1000 >= PART * finding.share * scene.summary.steady_s else None


def _computed(file: PythonFile, number: cst.BaseExpression, test: cst.If, body: list[cst.CSTNode], seen: int, what: str) -> Target:
    """An interval that the program works out, such as a share of an epoch: `seen` in this run, and multiplied where it is asked for."""
    if windows.followers(file, test, body, number, seen) or windows.ends(file, test, number, divided=False):
        raise refuse(f"{what} is computed, and other numbers must follow it")
    if isinstance(number, cst.BinaryOperation) and isinstance(number.operator, cst.Multiply) and isinstance(number.right, cst.Integer):
        raise refuse(f"{what} is a multiple of what is computed already")
    start, end = file.outer_span(number)
    text = file.raw[start:end].decode("utf-8")
    bare = isinstance(number, (cst.Name, cst.Attribute, cst.Subscript, cst.Call)) or bool(number.lpar)

    def write(value: Any) -> tuple[Splice, ...]:
        factor, rest = divmod(value, seen)
        if rest or factor < 2:
            raise refuse(f"{what}: {value!r} is no multiple of {seen!r}, which the program works out", "choose a multiple")
        return (Splice(file.path, start, end, f"({text if bare else f'({text})'} * {factor})"),)

    return Target(file.location(number), seen, write, f"{what}, multiplied there because it is computed")


Guard = tuple[PythonFile, cst.BaseExpression, cst.If, list[cst.CSTNode]]  # the interval, its condition, and all that it guards


def _guard(scene: Scene, file: PythonFile, place: Location, height: int) -> Guard | None:
    inner: tuple[cst.If, list[cst.BaseExpression], list[cst.CSTNode], list[cst.CSTNode]] | None = None
    for node in file.each(cst.If):
        covered = file.covers(node.body, place.line) or file.lines_of(node)[0] == place.line  # type: ignore[attr-defined]
        numbers, kept = paced.paced(scene.project, file, node) if covered else ([], [])  # type: ignore[arg-type]
        if numbers:
            inner = node, numbers, [node.body], kept  # type: ignore[assignment,attr-defined]
            continue
        left = windows.left_early(file, node)  # type: ignore[arg-type]
        behind = bool(left) and file.lines_of(left[0])[0] <= place.line <= file.lines_of(left[-1])[1]
        if behind and (numbers := _unless(node.test)):  # type: ignore[attr-defined]
            inner = node, numbers, left, []  # type: ignore[assignment]
    function = file.function_at(place)
    if inner is not None and (function is None or file.inside(inner[0], function)):
        test, numbers, body, kept = inner
        if len(numbers) > 1:
            raise refuse(f"{file.location(test)}: the condition holds more than one interval")
        parts = [line for line in test.body.body if line not in kept] if kept else body
        under = (*parts, test.orelse) if test.orelse is not None else parts
        reason = guarded.Guarded(scene.project, file, test, tuple(under), test.body is not body[0]).obstacle()
        if reason is not None:
            raise refuse(reason)
        return file, numbers[0], test, body
    if function is None or height >= HIGHEST:
        return None
    asked = callers.results(scene.project, file, function)
    found = [_guard(scene, where, where.location(node), height + 1) for where, node in asked]
    guards = {id(guard[1]): guard for guard in found if guard is not None}
    if len(guards) > 1 or (guards and None in found):
        raise refuse(f"{file.location(function)}: is called under several conditions")
    return next(iter(guards.values()), None)


def _unless(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    """N of a condition that is no more than `… % N` or `… % N != k`, under which a block is left."""
    side = test
    if isinstance(test, cst.Comparison) and [type(one.operator) for one in test.comparisons] == [cst.NotEqual]:
        side = test.left
    modulo = isinstance(side, cst.BinaryOperation) and isinstance(side.operator, cst.Modulo)
    return [side.right] if modulo and not isinstance(side.left, (cst.BaseString, cst.FormattedString)) else []  # type: ignore[union-attr]
