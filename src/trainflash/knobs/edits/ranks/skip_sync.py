"""Reduce gradients once for each update, not after every micro-batch: DDP's own switch, set in front of each forward."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.effects import changes
from trainflash.knobs.kinds import CallArgument, SkipSync
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import LOOPS, PythonFile, descendants, dotted
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import micro_batches

WRAPPED = CallArgument(
    ("torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel"), "module",
    at="communication.location",
)  # fmt: skip
SWITCH = "require_backward_grad_sync"


def skip_sync(edit: SkipSync, scene: Scene) -> tuple[Target, ...]:
    """The loop over micro-batches. Raises `UsageError` where the last one of an update cannot be told in front of it."""
    made, call = the_call(WRAPPED, scene)
    model = changes.bound_name(made, call)
    if model is None:
        raise refuse(f"{made.location(call)}: the wrapped network is not kept in one name")
    for file in scene.project.parsed():
        for node in (*file.calls, *(each for each in file.nodes if isinstance(each, cst.Attribute))):
            full = file.full_name(node.func) if isinstance(node, cst.Call) else None
            if full == "torch.compile" or (isinstance(node, cst.Attribute) and node.attr.value == SWITCH):
                raise refuse(f"{file.location(node)}: `{file.text(node)}` has a say in it already")
    file, loop = _loop(scene, model)
    test = _last(scene, file, loop)
    first = loop.body.body[0]
    start = file.span(first)[0]
    if not isinstance(loop.body, cst.IndentedBlock):
        raise refuse(f"{file.location(loop)}: the loop stands in one line")
    line = f"{model}.{SWITCH} = {test}{file.newline}{file.indent(first)}"
    where = f"{model} in the loop at {file.location(loop)}"
    return (Target(file.location(loop), None, lambda value: (Splice(file.path, start, start, line),), where, f"only when {test}"),)


def _loop(scene: Scene, model: str) -> tuple[PythonFile, cst.For]:
    """The innermost loop with the one backward pass of the program, in which the wrapped network is called."""
    found = []
    for file in scene.project.parsed("backward"):
        for call in file.calls:
            if isinstance(call.func, cst.Attribute) and call.func.attr.value == "backward":
                found.append((file, call))
    if len(found) != 1:
        raise refuse(f"{'no' if not found else 'more than one'} call of backward in the program")
    file, backward = found[0]
    loop = next((up for up in file.ancestors(backward) if isinstance(up, (*LOOPS, cst.FunctionDef))), None)
    here = file.location(backward)
    if not isinstance(loop, cst.For) or not isinstance(loop.body, cst.IndentedBlock):
        raise refuse(f"{here}: the backward pass does not stand in a loop over micro-batches")
    if not any(dotted(call.func) == model for call in descendants(loop.body, cst.Call)):
        raise refuse(f"{here}: the loop around it does not call {model}")
    if any(
        isinstance(node, (cst.Break, cst.Continue, cst.Return)) for node in descendants(loop.body, (cst.Break, cst.Continue, cst.Return))
    ):
        raise refuse(f"{file.location(loop)}: the loop may be left before its last micro-batch")
    return file, loop


def _last(scene: Scene, file: PythonFile, loop: cst.For) -> str:
    """When the micro-batch is the last of its update: what guards the optimizer's step, or the loop's last pass."""
    steps = _updates(scene, loop.body)
    found: dict[tuple[int, bool], cst.If] = {}
    for call in steps:
        guards = [up for up in file.ancestors(call) if isinstance(up, cst.If) and file.inside(up, loop.body)]
        found |= {(id(up), up.orelse is not None and file.inside(call, up.orelse)): up for up in guards}
        if not guards or len(found) > 1:
            raise refuse(f"{file.location(call)}: the optimizer's step is under {'no' if not guards else 'more than one'} condition")
    if steps:
        (_, otherwise), guard = next(iter(found.items()))
        test = guard.test
        if any(dotted(call.func) != "len" for call in descendants(test, cst.Call)) or any(descendants(test, cst.NamedExpr)):
            raise refuse(f"{file.location(test)}: the condition `{file.text(test)}` may give another answer in front of the step")
        _fixed(file, loop, {node.value for node in descendants(test, cst.Name)})
        _set_nowhere(scene, file, test)
        return f"not ({file.text(test)})" if otherwise else file.text(test)
    around = file.function_around(loop) or file.module
    if not any(file.span(call)[0] > file.span(loop)[1] for call in _updates(scene, around)):
        raise refuse(f"{file.location(loop)}: the update is not seen behind the loop over micro-batches")
    counted = loop.iter
    plain = isinstance(counted, cst.Call) and dotted(counted.func) == "range" and len(counted.args) == 1 and not counted.args[0].star
    if not plain or not isinstance(loop.target, cst.Name):
        raise refuse(f"{file.location(loop)}: which pass of the loop is the last one is not written as a number")
    most = counted.args[0].value  # type: ignore[union-attr]
    if any(descendants(most, cst.Call)):
        raise refuse(f"{file.location(loop)}: `{file.text(most)}` may give another number in the loop")
    _fixed(file, loop, {node.value for node in descendants(most, cst.Name)} | {loop.target.value})
    text = file.text(most)
    atom = isinstance(most, (cst.Name, cst.Attribute, cst.Subscript, cst.Integer))
    return f"{loop.target.value} == {text if atom else f'({text})'} - 1"


def _updates(scene: Scene, where: cst.CSTNode) -> list[cst.Call]:
    """Calls in `where` that make an update, with or without arguments, themselves or in a function of the program."""
    return [call for call in descendants(where, cst.Call) if micro_batches.makes_updates(scene.project, call)]  # type: ignore[arg-type,misc]


def _set_nowhere(scene: Scene, file: PythonFile, test: cst.BaseExpression) -> None:
    """Raises `UsageError` where a field in the condition is set outside a constructor: a call in the loop may do so."""
    fields = {node.attr.value for node in descendants(test, cst.Attribute)}
    for where in scene.project.parsed() if fields else ():
        for node in where.nodes:
            targets = [each.target for each in node.targets] if isinstance(node, cst.Assign) else []
            targets += [node.target] if isinstance(node, (cst.AugAssign, cst.AnnAssign)) else []
            function = where.location(node).function if targets else ""
            if function != "__init__" and any(isinstance(each, cst.Attribute) and each.attr.value in fields for each in targets):
                raise refuse(f"{where.location(node)}: `{where.text(node)}` may change which micro-batch is the last")


def _fixed(file: PythonFile, loop: cst.For, names: set[str]) -> None:
    """Raises `UsageError` where the loop sets one of `names` itself."""
    for node in descendants(loop.body, (cst.Assign, cst.AugAssign, cst.AnnAssign)):
        targets = [each.target for each in node.targets] if isinstance(node, cst.Assign) else [node.target]
        if any(
            name.value in names for target in targets for name in (target, *descendants(target, cst.Name)) if isinstance(name, cst.Name)
        ):
            raise refuse(f"{file.location(node)}: `{file.text(node)}` changes which micro-batch is the last")
