"""A torch mode that only looks at each operation, such as one that looks for NaN: the block under it runs without."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits import imports
from trainflash.knobs.edits.watching import kept_elsewhere, raised
from trainflash.knobs.effects import changes, writers
from trainflash.knobs.kinds import WatchingMode
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import given_to, refuse
from trainflash.knobs.reading.python_source import PythonFile, base_names, descendants, dotted, own_method, placed_parameters
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

MODES = {"TorchDispatchMode": "__torch_dispatch__", "TorchFunctionMode": "__torch_function__"}
ENTERS = "enter_context"
SHOWS = ("print", "debug", "info", "warning", "log")
OF_TORCH = ("torch.utils.flop_counter.FlopCounterMode",)


def watching_mode(edit: WatchingMode, scene: Scene) -> tuple[Target, ...]:
    """`contextlib.nullcontext()` in place of the mode. Raises `UsageError` where it may change what an operation gives, or is read."""
    found: list[tuple[PythonFile, cst.BaseExpression]] = []
    reasons: list[Exception] = []
    owners = {
        node.name.value: (file, node)
        for file, node in scene.project.each(("class",), lambda file, node: isinstance(node, cst.ClassDef) and bool(_hook(node)))
        if isinstance(node, cst.ClassDef)
    }
    for file, call in ((each, call) for each in scene.project.parsed() for call in each.calls):
        called = file.full_name(call.func) or ""
        owner = owners.get(called.split(".")[-1])
        entered = list(_entered(file, call)) if owner is not None or called in OF_TORCH else []
        if not entered:
            continue
        reason = (_changing(scene.project, *owner) if owner is not None else None) or _read(file, call, entered)
        if reason is None and owner is not None:
            reason = _counted_on(scene.project, *owner, file, entered)
        if reason is None:
            found += [(file, each) for each in entered]
        else:
            reasons.append(reason)
    if not found:
        raise reasons[0] if reasons else refuse("no block of the program runs under a mode that watches operations")
    if len(found) > 1:
        places = ", ".join(str(file.location(call)) for file, call in found[:4])
        raise refuse(f"several blocks run under a mode that watches operations: {places}", "take one away by hand")
    file, entered = found[0]
    spelled, needed = imports.reach(file, "contextlib", "nullcontext")
    splices = (*needed, Splice(file.path, *file.span(entered), f"{spelled}()"))
    here = file.location(entered)
    return (Target(here, None, lambda value: splices, f"`{file.text(entered)}` at {here}", "taken away"),)


def _entered(file: PythonFile, call: cst.Call) -> Iterator[cst.BaseExpression]:
    """What enters the mode that `call` makes: the call itself, or the name that it is given to."""
    if _enters(file, call):
        yield call
    up = file.parent(call)
    name = up.targets[0].target if isinstance(up, cst.Assign) and len(up.targets) == 1 else None
    around = file.function_around(call) or file.module
    if isinstance(name, cst.Name) and len(given_to(around, name.value)) == 1:
        yield from (each for each in descendants(around, cst.Name) if each.value == name.value and _enters(file, each))  # type: ignore[attr-defined,misc,arg-type]


def _enters(file: PythonFile, call: cst.BaseExpression) -> bool:
    """Whether `call` is what a `with` enters, also under a condition, or is handed to the `enter_context` of a stack of contexts."""
    up = file.parent(call)
    if isinstance(up, cst.IfExp) and up.test is not call:
        up = file.parent(up)
    if isinstance(up, cst.Arg):
        outer = file.parent(up)
        return isinstance(outer, cst.Call) and isinstance(outer.func, cst.Attribute) and outer.func.attr.value == ENTERS
    return isinstance(up, cst.WithItem)


def _hook(owner: cst.CSTNode) -> cst.FunctionDef | None:
    """The method by which a mode sees each operation; None where `owner` is none."""
    assert isinstance(owner, cst.ClassDef)
    names = {MODES[base] for base in base_names(owner) & set(MODES)}
    return own_method(owner, *names)


def _changing(project: Project, file: PythonFile, owner: cst.ClassDef) -> Exception | None:
    """Why the mode may give something else than the operation does; None where it hands on exactly that."""
    hook = _hook(owner)
    assert hook is not None
    params = [param.name.value for param in placed_parameters(hook)]
    here = file.location(hook)
    calls = [call for call in descendants(hook.body, cst.Call) if dotted(call.func) == (params[1] if len(params) > 1 else None)]
    if len(params) < 4 or len(calls) != 1 or not _all_of_it(file, calls[0], params[3]):
        return refuse(f"{here}: it does not simply call the operation with all that it is given")
    result = next((name for name in _names(hook) if any(value is calls[0] for value in given_to(hook, name))), None)
    for each in descendants(hook.body, cst.Return):
        if each.value is not calls[0] and (result is None or dotted(each.value) != result):
            return refuse(f"{file.location(each)}: `{file.text(each)}` may be something else than the operation gave")
    if result is not None and len(given_to(hook, result)) != 1:
        return refuse(f"{here}: {result} is assigned again")
    changed = changes.changed(project, file, hook.body, {result}) if result is not None else None
    return None if changed is None else refuse(f"{file.location(changed)}: `{file.text(changed)}` may change what the operation gave")


def _counted_on(
    project: Project, file: PythonFile, owner: cst.ClassDef, where: PythonFile, entered: list[cst.BaseExpression]
) -> Exception | None:
    """Why the mode cannot go, where the program reads what it keeps in variables of others, or goes on behind what it raises."""
    hook = _hook(owner)
    assert hook is not None
    try:
        kept_elsewhere.read_by_nobody(project, file, owner)
        for each in entered:
            raised.by_hook(project, file, hook, each, where)
    except UsageError as bad:
        return bad
    return None


def _names(hook: cst.FunctionDef) -> set[str]:
    return {node.target.value for node in descendants(hook.body, cst.AssignTarget) if isinstance(node.target, cst.Name)}


def _all_of_it(file: PythonFile, call: cst.Call, args: str) -> bool:
    """`func(*args, **(kwargs or {}))`, with or without the second."""
    stars = [arg.star for arg in call.args]
    return stars in (["*"], ["*", "**"]) and dotted(call.args[0].value) == args


def _read(file: PythonFile, call: cst.Call, entered: list[cst.BaseExpression]) -> Exception | None:
    """Why the mode cannot go, where a name that it gets is read; what an object is shown to have seen, which stays, may be nothing."""
    item = next((up for up in file.ancestors(call) if isinstance(up, (cst.WithItem, cst.BaseSmallStatement))), None)
    if isinstance(item, cst.WithItem):
        named = item.asname.name if item.asname is not None else None
    elif isinstance(item, cst.Expr):
        named = None
    else:
        named = item.targets[0].target if isinstance(item, cst.Assign) and len(item.targets) == 1 else None
        if not isinstance(named, cst.Name):
            return refuse(f"{file.location(call)}: who reads what the mode saw cannot be told")
    if named is None:
        return None
    name = dotted(named)  # type: ignore[arg-type]
    around = file.function_around(call) or file.module
    reads = [node for node in descendants(around, cst.Name) if node.value == name and node is not named and node not in entered]
    readers = [node for node in reads if call in entered or not writers.stands_in_call(file, node, SHOWS)]
    return refuse(f"{file.location(readers[0])}: what {name} saw is read here") if readers else None
