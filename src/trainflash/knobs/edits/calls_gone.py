"""Calls that go: a statement that is nothing but one, and what is called through another function instead of by itself."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits import left_out
from trainflash.knobs.edits.network import drawing, recomputed
from trainflash.knobs.edits.statements import called, taken_away
from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.effects import collected
from trainflash.knobs.kinds import RemoveCall, UnwrapCall
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import given_to, literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, dotted, keyword, targets_of
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import loading


def remove_call(edit: RemoveCall, scene: Scene) -> tuple[Target, ...]:
    """The statement that is nothing but the call. Raises `UsageError` where its value is used."""
    file, call = the_call(edit, scene)
    here = file.location(call)
    if any(name.endswith(recomputed.SWITCHES) for name in edit.calls):
        recomputed.whole(scene.project)
    if any(name.endswith(".synchronize") for name in edit.calls):
        loading.waited_for(scene.project)
        left_out.nobody_is_told(scene.project, file, call)
    if any(name.endswith(".empty_cache") for name in edit.calls):
        left_out.nobody_asks_for_free_memory(scene.project)
    left_out.arguments_do_nothing(scene.project, file, call)
    if collected.COLLECT in edit.calls:
        collected.nobody_needs_collections(scene.project)
    if edit.instead is not None and _counts(scene.project, file, call):
        splices: tuple[Splice, ...] = (Splice(file.path, *file.span(call), edit.instead),)
        risk, because = "cadence", f"the number that it found is shown as {edit.instead} then"
    else:
        splices, risk, because = taken_away(file, call), None, ""
    if left_out.TRACES in edit.calls and left_out.asks_what_is_traced(scene.project, call):
        risk, because = "cadence", "what is shown as traced is 0 then"
    return (Target(here, None, lambda value: splices, f"`{file.text(call)}` at {here}", "taken away", risk, because),)


def _counts(project: Project, file: PythonFile, call: cst.Call) -> bool:
    """Whether the call's value is only shown, or added up under a key whose value is only shown."""
    for up in file.ancestors(call):
        if isinstance(up, (cst.Assign, cst.AugAssign)):
            return all(collected.only_shown(project, file, each) for each in targets_of(up))
        if isinstance(up, cst.Call) and file.full_name(up.func) == "print":
            return True
        if not isinstance(up, (cst.BinaryOperation, cst.BaseFormattedStringContent, cst.FormattedString, cst.Arg)):
            return False
        if isinstance(up, cst.BinaryOperation) and not isinstance(up.operator, (cst.Add, cst.Multiply)):
            return False
    return False


def unwrap_call(edit: UnwrapCall, scene: Scene) -> tuple[Target, ...]:
    """`wrapper(function, …)`; raises `UsageError` where the arguments cannot be told apart."""
    file, call = the_call(edit, scene)
    here = file.location(call)
    own = [arg for arg in call.args if arg.keyword is not None and arg.keyword.value in edit.options]
    rest = [arg for arg in call.args if arg not in own]
    if not rest or rest[0].keyword is not None or rest[0].star:
        raise refuse(f"{here}: `{dotted(call.func)}` is called without a function in front")
    if any(arg.star == "**" for arg in rest) and not own:
        raise refuse(f"{here}: `{dotted(call.func)}` is called with unpacked arguments, some of which may be its own")
    for arg in rest:
        if arg.keyword is not None and arg.keyword.value in edit.refused:
            raise refuse(f"{here}: {arg.keyword.value} does more than `{dotted(call.func)}` alone")
    for arg in own:
        if literal(arg.value) not in (True, False, None) and not isinstance(arg.value, (cst.Name, cst.Attribute)):
            raise refuse(f"{here}: `{file.text(arg)}` may do more than switch")
    keeps = keyword(call, "preserve_rng_state")
    if keeps is not None and literal(keeps.value) is not True:
        drawing.nothing(scene.project)
    target, arguments = rest[0].value, rest[1:]
    if edit.segments:
        _is_sequential(file, call, target)
        if len(arguments) != 2 or any(arg.keyword is not None or arg.star for arg in arguments):
            raise refuse(f"{here}: `{dotted(call.func)}` is not given its number of parts and one input")
        arguments = arguments[1:]
    target, arguments = _without_partial(file, target, arguments)
    if set(edit.calls) & set(recomputed.WRAPPERS):
        recomputed.counts_nothing(scene.project, file, target)
        if recomputed.reentrant(scene.project, file, call):
            recomputed.carry_gradients(scene.project, file, call, list(arguments))
    splice = Splice(file.path, *file.span(call), called(file, target, arguments))
    return (Target(here, None, lambda value: (splice,), f"`{dotted(call.func)}` at {here}", "unwrapped"),)


def _is_sequential(file: PythonFile, call: cst.Call, target: cst.BaseExpression) -> None:
    """Raises `UsageError` unless `target` is assigned a `torch.nn.Sequential` and nothing else: a list cannot be called."""
    name, owner = dotted(target), file.class_around(call) or file.module
    made = given_to(owner if (name or "").startswith("self.") else file.module, name) if name is not None else []
    if not made or not all(isinstance(each, cst.Call) and file.full_name(each.func) == "torch.nn.Sequential" for each in made):
        raise refuse(f"{file.location(call)}: `{file.text(target)}` is not known to be a torch.nn.Sequential")


def _without_partial(file: PythonFile, target: cst.BaseExpression, arguments: list[cst.Arg]) -> tuple[cst.BaseExpression, list[cst.Arg]]:
    """`partial(f, a)` called with `b` is `f(a, b)`; keywords of the partial stay in it, because later ones would replace them."""
    bound = target.args if isinstance(target, cst.Call) and file.full_name(target.func) == "functools.partial" else ()
    if not bound or any(arg.keyword is not None or arg.star for arg in bound):
        return target, arguments
    return bound[0].value, [*bound[1:], *arguments]
