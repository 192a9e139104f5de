"""Activation checkpointing that the program wrote itself: an autograd function that runs another one, and again in backward."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits.statements import called
from trainflash.knobs.kinds import OwnCheckpoint
from trainflash.knobs.reading.expressions import given_to, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

FUNCTION = "torch.autograd.Function"
AGAIN = ("torch.autograd.grad", "torch.autograd.backward")


def own_checkpoint(edit: OwnCheckpoint, scene: Scene) -> tuple[Target, ...]:
    """All calls `Rerun.apply(function, *arguments)` as `function(*arguments)`. Raises `UsageError` where the class does more than that."""
    found = scene.project.each(("class", "Function"), lambda file, node: isinstance(node, cst.ClassDef) and _reruns(file, node))
    if len(found) != 1:
        raise refuse(f"{'no' if not found else 'more than one'} autograd function of the program runs another one again in backward")
    made, owner = found[0]
    assert isinstance(owner, cst.ClassDef)
    name = owner.name.value
    sites = [
        (file, call)
        for file in scene.project.parsed(name, "apply")
        for call in file.calls
        if (dotted(call.func) or "").split(".")[-2:] == [name, "apply"]
    ]
    if not sites:
        raise refuse(f"{made.location(owner)}: no call of {name}.apply was found in the program")
    for file, call in sites:
        if not call.args or call.args[0].keyword is not None or call.args[0].star:
            raise refuse(f"{file.location(call)}: `{file.text(call)}` is called without a function in front")
    splices = tuple(Splice(file.path, *file.span(call), called(file, call.args[0].value, call.args[1:])) for file, call in sites)
    here = sites[0][0].location(sites[0][1])
    return (Target(here, None, lambda value: splices, f"{name}.apply at {here}", "unwrapped"),)


def _reruns(file: PythonFile, owner: cst.ClassDef) -> bool:
    """Whether forward gives what its first argument makes of the others, and backward calls that again to differentiate it."""
    methods = {each.name.value: each for each in owner.body.body if isinstance(each, cst.FunctionDef)}
    forward, backward = methods.get("forward"), methods.get("backward")
    if not any(file.full_name(base.value) == FUNCTION for base in owner.bases) or forward is None or backward is None:
        return False
    params = forward.params
    if len(params.params) != 2 or not isinstance(params.star_arg, cst.Param) or params.kwonly_params or params.star_kwarg is not None:
        return False
    context, body, tensors = params.params[0].name.value, params.params[1].name.value, params.star_arg.name.value
    returned = [node.value for node in descendants(forward.body, cst.Return)]
    kept = [
        target.target.attr.value
        for assign in descendants(forward.body, cst.Assign)
        for target in assign.targets
        if isinstance(target.target, cst.Attribute) and dotted(target.target.value) == context and dotted(assign.value) == body
    ]
    ends = [_result(forward, value) for value in returned]
    plain = bool(ends) and all(
        isinstance(value, cst.Call) and dotted(value.func) == body and [file.text(arg).strip() for arg in value.args] == [f"*{tensors}"]
        for value in ends
    )
    own = backward.params.params[0].name.value if backward.params.params else ""
    called = {dotted(call.func) or "" for call in descendants(backward.body, cst.Call)}
    again = any(f"{own}.{name}" in called for name in kept)
    differentiated = any(file.full_name(call.func) in AGAIN for call in descendants(backward.body, cst.Call))
    return plain and again and differentiated


def _result(forward: cst.FunctionDef, value: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """What is returned, through one local name."""
    if isinstance(value, cst.Name):
        made = given_to(forward, value.value)
        return made[0] if len(made) == 1 else None
    return value
