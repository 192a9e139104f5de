"""Edits of what interrupts training: evaluate without gradients, and do it, checkpoints or logging less often."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from trainflash.knobs import facts
from trainflash.knobs.edits import imports
from trainflash.knobs.kinds import Decorate, Interval, ReplaceCall
from trainflash.knobs.reading import callees, changes, sources, uses, windows
from trainflash.knobs.reading.expressions import literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, decorator_names, descendants, dotted
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.schema import Location

EVALUATES = re.compile(r"(^|_)(eval|evaluate|evaluation|validate|validation|valid|val|test)(_|$)")
NEEDS_GRADIENTS = (
    "torch.autograd.grad",
    "torch.autograd.functional.",
    "torch.autograd.backward",
    "torch.func.",
    "torch.enable_grad",
    "torch.autograd.enable_grad",
)
HIGHEST = 3  # own: calls that lie between an activity and the condition that guards it


def decorate(edit: Decorate, scene: Scene) -> tuple[Target, ...]:
    """The one function that evaluates: named so or calling `.eval()`, and not training. Raises `UsageError` with the reason otherwise."""
    file, function = _evaluator(scene)
    _already(file, function, edit.equivalent)
    here = file.location(function)
    scripted = [name for name in decorator_names(file, function) if name.startswith(("torch.jit.", "numba."))]
    if scripted:
        raise refuse(f"{here}: {function.name.value} is decorated by {scripted[0]}, which reads its source")
    module, name = edit.decorator.split("(")[0].rsplit(".", 1)
    spelled, needed = imports.reach(file, module, name)
    start = _under_decorators(file, function)
    row = file.raw.rfind(b"\n", 0, start) + 1
    indent = file.raw[row:start].decode("utf-8").removeprefix("\ufeff")
    call = edit.decorator[edit.decorator.index("(") :] if "(" in edit.decorator else ""
    splices = (*needed, Splice(file.path, start, start, f"@{spelled}{call}{file.newline}{indent}"))
    return (Target(here, "off", lambda value: splices, f"{function.name.value} at {here}", f"@{spelled}{call}"),)


def _under_decorators(file: PythonFile, function: cst.FunctionDef) -> int:
    """Where the function itself begins: a decorator that registers it must be handed the decorated one."""
    return file.span(function)[0]


def replace_within(edit: ReplaceCall, scene: Scene) -> tuple[Target, ...]:
    """The only call of one of `calls` on or in the function that evaluates, such as `no_grad()`. Raises `UsageError` otherwise."""
    file, function = _evaluator(scene)
    found = [call for call in descendants(function, cst.Call) if file.full_name(call.func) in edit.calls]
    names = " or ".join(sorted({name.split(".")[-1] for name in edit.calls}))
    if len(found) != 1 or not isinstance(found[0].func, cst.Attribute):
        how = "no call of" if not found else "several calls, or one that was imported by name, of"
        raise refuse(f"{how} {names} in {function.name.value} at {file.location(function)}")
    call = found[0]
    if edit.to.startswith("inference_mode") and (reason := _outlives(scene, file, function)):
        raise refuse(reason)
    start, end = file.span(call.func.attr)[0], file.span(call)[1]  # type: ignore[attr-defined]
    where = f"{function.name.value} at {file.location(call)}"
    return (Target(file.location(call), False, lambda value: (Splice(file.path, start, end, edit.to),), where, edit.to),)


def _already(file: PythonFile, function: cst.FunctionDef, equivalent: tuple[str, ...]) -> None:
    if any(name in equivalent for name in decorator_names(file, function)):
        raise refuse(f"{file.location(function)}: {function.name.value} already runs without gradients")
    for item in descendants(function.body, cst.WithItem):
        called = item.item.func if isinstance(item.item, cst.Call) else item.item
        if file.full_name(called) in equivalent:
            raise refuse(f"{file.location(item)}: {function.name.value} already runs without gradients here")


def _evaluator(scene: Scene) -> tuple[PythonFile, cst.FunctionDef]:
    ran = facts.activity(scene.summary, "Eval")
    place = scene.at or (ran.location if ran is not None else None) or (scene.finding.location if scene.finding is not None else None)
    found: list[tuple[PythonFile, cst.FunctionDef]] = []
    reason = ""
    if scene.project.owns(place):
        file = scene.project.python(place.file)  # type: ignore[union-attr]
        function = file.function_at(place)  # type: ignore[arg-type]
        if function is not None:
            reason = _not_evaluating(scene, file, function)
            if not reason:
                found = [(file, function)]
    if not found:
        functions = [(file, function) for file in scene.project.parsed("def ") for function in file.functions]
        found = [(file, function) for file, function in functions if _loops(function) and not _not_evaluating(scene, file, function)]
    if len(found) != 1:
        listed = ", ".join(f"{function.name.value} at {file.location(function)}" for file, function in found[:4])
        raise refuse(": ".join(part for part in ("no single function evaluates and does nothing else", listed, reason) if part))
    return found[0]


def _not_evaluating(scene: Scene, file: PythonFile, function: cst.FunctionDef) -> str:
    """Why gradients may not be switched off for the whole function; empty when they may."""
    name = function.name.value
    calls = [call for call in descendants(function, cst.Call) if isinstance(call.func, cst.Attribute)]
    called = {call.func.attr.value for call in calls}  # type: ignore[union-attr]
    if name in ("forward", "__call__", "training_step", "compute_loss", "__init__"):
        return f"{name} also runs while training"
    if called & {"backward", "manual_backward", "zero_grad", "train_step", "training_step", "fit"} or "requires_grad_" in called:
        return f"{name} also trains"
    if any(call.func.attr.value == "train" and not callees.switches_mode(file, call) for call in calls):  # type: ignore[union-attr]
        return f"{name} may also train"
    if any(isinstance(node, cst.Yield) for node in descendants(function, cst.Yield)):
        return f"{name} is a generator"
    if not EVALUATES.search(name) and "eval" not in called:
        return f"{name} does not say that it evaluates"
    if function.asynchronous is not None:
        return f"{name} is asynchronous"
    return _differentiates(scene, file, function) or _is_trained_on(scene, file, function)


def _differentiates(scene: Scene, file: PythonFile, function: cst.FunctionDef) -> str:
    """Why what the function calls needs gradients; networks may differentiate in their own forward."""
    for where, each in callees.reached(scene.project, [(file, function), *callees.forwards(scene.project)]):
        for call in descendants(each, cst.Call):
            full = where.full_name(call.func) or ""
            tail = call.func.attr.value if isinstance(call.func, cst.Attribute) else full.split(".")[-1]
            if full.startswith(NEEDS_GRADIENTS) or tail in ("backward", "zero_grad", "requires_grad_"):
                what = f"`{where.text(call.func)}` at {where.location(call)}"
                return f"{function.name.value} calls a function that trains or needs gradients: {what}"
    return ""


def _is_trained_on(scene: Scene, file: PythonFile, function: cst.FunctionDef) -> str:
    """Whether a caller calls `.backward()` on what the function returns."""
    for where, call in uses.callers(scene.project, file, function):
        up = where.parent(call)
        kept = changes.bound_name(where, call)
        around = next((each for each in where.ancestors(call) if isinstance(each, (cst.FunctionDef, cst.Module))), where.module)
        for other in descendants(around, cst.Call):
            trains = isinstance(other.func, cst.Attribute) and other.func.attr.value == "backward"
            if trains and (other.func is up or (kept is not None and dotted(other.func.value) == kept)):
                return f"what {function.name.value} returns is trained on at {where.location(other)}"
    return ""


def _outlives(scene: Scene, file: PythonFile, function: cst.FunctionDef) -> str:
    """Why tensors that evaluation makes may be used in training, where tensors of inference mode fail; empty when they are not."""
    own = {param.name.value for param in function.params.params}
    for node in descendants(function.body, cst.Assign):
        for target in node.targets:
            name = changes.root(target.target)
            if isinstance(target.target, cst.Attribute) and name in {*own, "self"}:
                return f"{file.location(node)}: `{file.text(target.target)}` keeps what evaluation computed"
    for where in scene.project.parsed("def forward"):
        for each in where.functions:
            if each.name.value in ("__init__", "__post_init__") or where.class_of(each) is None:
                continue
            for node in descendants(each.body, cst.Assign):
                kept = any((dotted(target.target) or "").startswith("self.") for target in node.targets)
                if kept and _is_network(where, each) and not isinstance(node.value, (cst.Integer, cst.Float, cst.Name, cst.SimpleString)):
                    return f"{where.location(node)}: the network keeps what it computes, and training would meet it again"
    if any(isinstance(node, cst.Return) and node.value is not None for node in descendants(function.body, cst.Return)):
        for where, call in uses.callers(scene.project, file, function):
            kept = changes.bound_name(where, call)
            around = next((each for each in where.ancestors(call) if isinstance(each, (cst.FunctionDef, cst.Module))), where.module)
            for read in descendants(around, cst.Name):
                nearest = next((up for up in where.ancestors(read) if isinstance(up, (cst.FunctionDef, cst.Module))), where.module)
                if read.value == kept and nearest is around and not _only_shown(where, read):
                    return f"{where.location(read)}: what evaluation returns is used again"
    return ""


def _is_network(file: PythonFile, function: cst.FunctionDef) -> bool:
    owner = file.class_of(function)
    return owner is not None and any(isinstance(each, cst.FunctionDef) and each.name.value == "forward" for each in owner.body.body)


def _only_shown(file: PythonFile, name: cst.Name) -> bool:
    """Whether the name is assigned, compared, formatted or printed."""
    up = file.parent(name)
    while isinstance(up, (cst.Attribute, cst.Subscript, cst.Index, cst.SubscriptElement, cst.BinaryOperation)):
        up = file.parent(up)
    if isinstance(up, cst.Arg):
        call = file.parent(up)
        shown = (dotted(call.func) or "").split(".")[-1] if isinstance(call, cst.Call) else ""
        return shown in (
            "print",
            "float",
            "int",
            "min",
            "max",
            "round",
            "info",
            "log",
            "add_scalar",
            "debug",
            "write",
            "append",
            "dumps",
            "step",
        )
    return isinstance(
        up, (cst.AssignTarget, cst.ComparisonTarget, cst.Comparison, cst.FormattedStringExpression, cst.Return, cst.If, cst.AugAssign)
    )


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
    where, number, test, body = guard
    here = where.location(number)
    seen = ran.every_steps if ran is not None and scene.at is None else None
    found = sources.Resolver(scene.project, sources.UNKNOWN if seen is None else round(seen)).source(where, number)
    if found is None or not isinstance(found.value, int) or isinstance(found.value, bool) or found.value < 1:
        raise refuse(f"{here}: how often it happens is not a number that somebody typed")
    what = f"the interval in the condition at {here}"
    along = windows.followers(where, test, body, number, found.value)
    last = windows.last_of_window(number, test, found.value)
    typed = [node for node in along if literal(node) == found.value]
    named = {where.location(node).line for node in along if node not in typed}
    others = [use for use in found.uses if use.kind != "shown" and not (use.location.file == where.path and use.location.line in named)]

    def anew(value: int) -> tuple[Splice, ...]:
        ends = ((last, value - 1),) if last is not None else ()
        return tuple(Splice(where.path, *where.span(node), repr(new)) for node, new in (*((node, value) for node in typed), *ends))

    if found.write is not None and not others:
        typing = found.write
        return (Target(here, found.value, lambda value: (*typing(value), *anew(value)), f"{what}, from {found.shown}"),)
    places = [number, *(node for node in along if node not in typed)]

    def write(value: Any) -> tuple[Splice, ...]:
        factor, rest = divmod(value, found.value)
        if rest or factor < 2:
            raise refuse(f"{what}: {value!r} is no multiple of {found.value!r}, and {found.shown} is shared", "choose a multiple")
        spans = [where.outer_span(node) for node in places]
        times = [Splice(where.path, *span, f"({where.raw[slice(*span)].decode('utf-8')} * {factor})") for span in spans]
        return (*times, *anew(value))

    return (Target(here, found.value, write, f"{what}, multiplied there because {found.shown} has other readers"),)


Guard = tuple[PythonFile, cst.BaseExpression, cst.If, list[cst.CSTNode]]  # the interval, its condition, and all that it guards


def _guard(scene: Scene, file: PythonFile, place: Location, height: int) -> Guard | None:
    inner: tuple[cst.If, list[cst.BaseExpression], list[cst.CSTNode]] | None = None
    for node in file.nodes:
        if isinstance(node, cst.If):
            first, last = file.lines_of(node.body)
            if (first <= place.line <= last or file.lines_of(node)[0] == place.line) and (numbers := _modulo(node.test)):
                inner = node, numbers, [node.body]
                continue
            left = windows.left_early(file, node)
            behind = bool(left) and file.lines_of(left[0])[0] <= place.line <= file.lines_of(left[-1])[1]
            if behind and (numbers := _unless(node.test)):
                inner = node, numbers, left
    function = file.function_at(place)
    if inner is not None and (function is None or file.inside(inner[0], function)):
        test, numbers, body = inner
        if len(numbers) > 1:
            raise refuse(f"{file.location(test)}: the condition holds more than one interval")
        calls = [call for each in body for call in descendants(each, cst.Call)]
        updates = [call for call in calls if isinstance(call.func, cst.Attribute) and _updates(call.func)]
        if updates:
            raise refuse(f"{file.location(updates[0])}: the same condition guards `{file.text(updates[0])}`")
        return file, numbers[0], test, body
    if function is None or height >= HIGHEST:
        return None
    sites = uses.callers(scene.project, file, function)
    found = [_guard(scene, where, where.location(call), height + 1) for where, call in sites]
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


def _updates(called: cst.Attribute) -> bool:
    return called.attr.value in ("backward", "zero_grad", "clip_grad_norm_") or (
        called.attr.value == "step" and "profil" not in (dotted(called.value) or "prof")
    )


def _modulo(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    """N of each `… % N == k` and `not … % N`; in another condition a larger N may mean more often."""
    sides = [each.left for each in descendants(test, cst.Comparison) if [type(one.operator) for one in each.comparisons] == [cst.Equal]]
    sides += [each.expression for each in descendants(test, cst.UnaryOperation) if isinstance(each.operator, cst.Not)]
    found = [node for side in sides for node in [side] if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Modulo)]
    return [node.right for node in found if not isinstance(node.left, (cst.BaseString, cst.FormattedString))]
