"""Activation checkpointing that the program wrote itself: an autograd function that runs another one, and again in backward."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits.network import recomputed
from trainflash.knobs.edits.statements import called
from trainflash.knobs.kinds import OwnCheckpoint
from trainflash.knobs.reading.expressions import given_to, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, methods_of
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

FUNCTION = "torch.autograd.Function"
AGAIN = ("torch.autograd.grad", "torch.autograd.backward")
SEQUENCES = ("list", "tuple")  # copies of what they are given


def own_checkpoint(edit: OwnCheckpoint, scene: Scene) -> tuple[Target, ...]:
    """All calls `Rerun.apply(function, *arguments)` as `function(*arguments)`. Raises `UsageError` where the class does more than that."""
    classes = scene.project.each(("class", "Function"), lambda file, node: isinstance(node, cst.ClassDef))
    found = [(file, owner, ahead) for file, owner in classes if (ahead := _ahead_of_inputs(file, owner))]  # type: ignore[arg-type]
    if len(found) != 1:
        raise refuse(f"{'no' if not found else 'more than one'} autograd function of the program runs another one again in backward")
    made, owner, ahead = found[0]
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
        recomputed.counts_nothing(scene.project, file, call.args[0].value)
    splices = tuple(Splice(file.path, *file.span(call), _unwrapped(file, call, ahead)) for file, call in sites)
    here = sites[0][0].location(sites[0][1])
    return (Target(here, None, lambda value: splices, f"{name}.apply at {here}", "unwrapped"),)


def _unwrapped(file: PythonFile, call: cst.Call, ahead: int) -> str:
    """The function's own call. Raises `UsageError` where which arguments are its inputs cannot be told."""
    function, rest = call.args[0].value, call.args[1:]
    if ahead == 1:
        return called(file, function, rest)
    count, given = rest[0].value if rest else None, rest[1:]
    if isinstance(count, cst.Integer) and int(count.value) <= len(given) and not any(arg.star for arg in given[: int(count.value)]):
        return called(file, function, given[: int(count.value)])
    measured = count.args[0].value if isinstance(count, cst.Call) and dotted(count.func) == "len" and len(count.args) == 1 else None
    first = given[0] if given and given[0].star == "*" and isinstance(measured, cst.Name) else None
    if first is not None and _begins_with(file, first.value, measured.value):  # type: ignore[union-attr]
        return f"{called(file, function, ())[:-2]}(*{measured.value})"  # type: ignore[union-attr]
    raise refuse(f"{file.location(call)}: which arguments of `{short(file.text(call))}` are inputs cannot be told")


def _begins_with(file: PythonFile, node: cst.BaseExpression, name: str, depth: int = 2) -> bool:
    """Whether a sequence is `name`, or `name` and more behind it: `tuple(name) + tuple(others)`."""
    while isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        node = node.left
    if isinstance(node, cst.Call) and dotted(node.func) in SEQUENCES and len(node.args) == 1:
        node = node.args[0].value
    if dotted(node) == name:
        return True
    made = given_to(file.function_around(node) or file.module, node.value) if isinstance(node, cst.Name) and depth else []
    return len(made) == 1 and _begins_with(file, made[0], name, depth - 1)


def _ahead_of_inputs(file: PythonFile, owner: cst.ClassDef) -> int:
    """How many arguments of `apply` stand in front of the inputs: the function, and maybe how many inputs there are; weights may follow.

    0 unless forward gives what the function makes of the inputs, and backward calls it again to differentiate it.
    """
    methods = {each.name.value: each for each in methods_of(owner)}
    forward, backward = methods.get("forward"), methods.get("backward")
    if not any(file.full_name(base.value) == FUNCTION for base in owner.bases) or forward is None or backward is None:
        return 0
    params = forward.params
    if (
        len(params.params) not in (2, 3)
        or not isinstance(params.star_arg, cst.Param)
        or params.kwonly_params
        or params.star_kwarg is not None
    ):
        return 0
    context, body, *count = (each.name.value for each in params.params)
    tensors = params.star_arg.name.value
    inputs = f"{tensors}[:{count[0]}]" if count else tensors
    kept = {
        node.attr.value: made[0]
        for node in descendants(forward.body, cst.Attribute)
        if dotted(node.value) == context and len(made := given_to(forward, f"{context}.{node.attr.value}")) == 1
    }
    runs = [body, *(f"{context}.{name}" for name, value in kept.items() if dotted(value) == body)]

    def source(node: cst.BaseExpression) -> str:
        """An argument's source, through what the context keeps and copies of sequences."""
        if isinstance(node, cst.Attribute) and dotted(node.value) == context and node.attr.value in kept:
            node = kept[node.attr.value]
        if isinstance(node, cst.Call) and dotted(node.func) in SEQUENCES and len(node.args) == 1:
            node = node.args[0].value
        return "".join(file.text(node).split())

    returned = [_result(forward, node.value) for node in descendants(forward.body, cst.Return)]
    plain = bool(returned) and all(
        isinstance(value, cst.Call)
        and dotted(value.func) in runs
        and [(arg.star, source(arg.value)) for arg in value.args] == [("*", inputs)]
        for value in returned
    )
    own = backward.params.params[0].name.value if backward.params.params else ""
    called = {dotted(call.func) or "" for call in descendants(backward.body, cst.Call)}
    again = any(f"{own}.{name.rpartition('.')[2]}" in called for name in runs[1:])
    differentiated = any(file.full_name(call.func) in AGAIN for call in descendants(backward.body, cst.Call))
    return 1 + len(count) if plain and again and differentiated else 0


def _result(forward: cst.FunctionDef, value: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """What is returned, through one local name."""
    if isinstance(value, cst.Name):
        made = given_to(forward, value.value)
        return made[0] if len(made) == 1 else None
    return value
