"""Evaluate without recording gradients."""

from __future__ import annotations

import re

import libcst as cst

from trainflash.knobs import facts
from trainflash.knobs.edits import imports
from trainflash.knobs.edits.statements import decorating
from trainflash.knobs.effects import lasting, outcomes
from trainflash.knobs.kinds import Decorate, ReplaceCall
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, decorator_names, descendants, dotted
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

EVALUATES = re.compile(r"(^|_)(eval|evaluate|evaluation|validate|validation|valid|val|test)(_|$)")
TRAINS = re.compile(r"^(pre)?(train|fit|finetune|fine_tune)(_(one|an|a|single|the))?(_(epochs?|steps?|batch|loop|model|net|network))?$")
BACKWARD = ("backward", "manual_backward")
HIGHEST = 3  # own: calls that lie between an evaluation and who would train on what it returns
NEEDS_GRADIENTS = (
    "torch.autograd.grad",
    "torch.autograd.functional.",
    "torch.autograd.backward",
    "torch.func.",
    "torch.enable_grad",
    "torch.autograd.enable_grad",
)


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
    call = edit.decorator[edit.decorator.index("(") :] if "(" in edit.decorator else ""
    splices = (*needed, decorating(file, function, f"{spelled}{call}"))  # what registers the function must be handed the decorated one
    return (Target(here, "off", lambda value: splices, f"{function.name.value} at {here}", f"@{spelled}{call}"),)


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
    return _differentiates(scene, file, function) or _by_name(file, function) or _is_trained_on(scene, file, function)


def _by_name(file: PythonFile, function: cst.FunctionDef) -> str:
    """Whether something is called that says that it trains, such as a function of a library; a network's switch does not."""
    for call in descendants(function, cst.Call):
        if TRAINS.match(callees.called_name(call)) and not callees.switches_mode(file, call):
            return f"{function.name.value} may also train, by `{file.text(call.func)}` at {file.location(call)}"
    return ""


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


def _is_trained_on(scene: Scene, file: PythonFile, function: cst.FunctionDef, height: int = 0) -> str:
    """Whether something calls `backward` on what the function returns, or on what is worked out from it, also further up."""
    for where, call in callers.sites(scene.project, file, function):
        around = where.function_around(call)
        body = around or where.module
        names = outcomes.derived(body, outcomes.held(where, call))
        for other in descendants(body, cst.Call):
            trains = isinstance(other.func, cst.Attribute) and other.func.attr.value in BACKWARD
            if trains and (where.inside(call, other) or outcomes.mentions(other, names)):
                return f"what {function.name.value} returns is trained on at {where.location(other)}"
        given = any(where.inside(call, each) or outcomes.mentions(each, names) for each in descendants(body, cst.Return))
        if given and around is not None and around is not function and height < HIGHEST:
            found = _is_trained_on(scene, where, around, height + 1)
            if found:
                return found
    return ""


def _outlives(scene: Scene, file: PythonFile, function: cst.FunctionDef) -> str:
    """Why tensors that evaluation makes may be used in training, where tensors of inference mode fail; empty when they are not."""
    kept = lasting.of_function(file, function)
    if kept is not None:
        return f"{file.location(kept)}: `{file.text(kept)}` keeps what evaluation computed"
    for where, each in callees.reached(scene.project, [(file, function), *callees.forwards(scene.project)]):
        node = lasting.of_network(where, each)
        if node is not None:
            return f"{where.location(node)}: the network keeps what it computes, and training would meet it again"
    if any(isinstance(node, cst.Return) and node.value is not None for node in descendants(function.body, cst.Return)):
        for where, call in callers.sites(scene.project, file, function):
            kept = outcomes.held(where, call)
            around = where.function_around(call) or where.module
            if isinstance(where.parent(call), cst.Arg) and not _only_shown(where, call):
                return f"{where.location(call)}: what evaluation returns is used again"
            for read in descendants(around, cst.Name):
                nearest = where.function_around(read) or where.module
                if read.value in kept and nearest is around and not _only_shown(where, read):
                    return f"{where.location(read)}: what evaluation returns is used again"
    return ""


def _only_shown(file: PythonFile, name: cst.CSTNode) -> bool:
    """Whether what has this name, or is called here, is assigned, compared, formatted or printed."""
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
