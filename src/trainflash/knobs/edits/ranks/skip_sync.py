"""Reduce gradients once for each update, not after every micro-batch: DDP's own switch, set in front of each forward."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits.ranks.last_pass import SETS, fixed, last_pass, set_elsewhere, sets
from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.effects import changes
from trainflash.knobs.kinds import CallArgument, SkipSync
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import is_name, literal, refuse
from trainflash.knobs.reading.python_source import ASSIGNS, PythonFile, descendants, dotted, keyword, sole, targets_of
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import micro_batches
from trainflash.knobs.training.backward_loops import BackwardLoop, backward_loops

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
    static = keyword(call, "static_graph")
    if static is not None and literal(static.value) is not False:
        raise refuse(f"{made.location(call)}: `{made.text(static)}` declares that every backward pass is the same, exchanges included")
    for file in scene.project.parsed():
        for node in (*file.calls, *(each for each in file.nodes if isinstance(each, cst.Attribute))):
            full = file.full_name(node.func) if isinstance(node, cst.Call) else None
            if full == "torch.compile" or (isinstance(node, cst.Attribute) and node.attr.value in (SWITCH, "no_sync", "_set_static_graph")):
                raise refuse(f"{file.location(node)}: `{file.text(node)}` has a say in it already")
    around = _loop(scene, model)
    file, loop = around.file, around.loop
    assert isinstance(loop, cst.For)
    test, counting = _last(scene, file, loop, around.sites[-1][1] if around.sites else around.backward[1])
    first = loop.body.body[0]
    start = file.span(first)[0]
    switch = Splice(file.path, start, start, f"{model}.{SWITCH} = {test}{file.newline}{file.indent(first)}")
    where = f"{model} in the loop at {file.location(loop)}"
    return (Target(file.location(loop), None, lambda value: (*counting, switch), where, f"only when {test}"),)


def _loop(scene: Scene, model: str) -> BackwardLoop:
    """The innermost loop around the one backward pass of the program, in which the wrapped network is called."""
    found = everywhere = list(backward_loops(scene.project))
    if len(found) > 1 and (finding := scene.finding) is not None and (place := finding.location) is not None:
        found = [each for each in found if each.backward[0].path == place.file and each.backward[0].covers(each.backward[1], place.line)]
    if len(found) != 1:
        raise refuse(f"{'no' if not found else 'more than one'} call of backward in the program")
    file, loop = found[0].file, found[0].loop
    here = found[0].backward[0].location(found[0].backward[1])
    if not isinstance(loop, cst.For) or not isinstance(loop.body, cst.IndentedBlock):
        raise refuse(f"{here}: the backward pass does not stand in a loop over micro-batches")
    if not any(dotted(call.func) == model for _, call in found[0].each(cst.Call)):  # type: ignore[attr-defined]
        raise refuse(f"{here}: the loop around it does not call {model}")
    if any(True for _ in descendants(loop.body, (cst.Break, cst.Continue, cst.Return))):
        raise refuse(f"{file.location(loop)}: the loop may be left before its last micro-batch")
    _each_pass(found[0])
    if len(everywhere) > 1 and _updates(scene, loop.body):
        raise refuse(f"{here}: another backward pass would find the exchange switched off where the loop ends within an update")
    return found[0]


def _each_pass(around: BackwardLoop) -> None:
    """Raises `UsageError` where a pass of the loop may do without its backward pass."""
    for file, node in ((around.backward[0], around.backward[1]), *around.sites):
        for up in file.ancestors(node):
            if up is around.loop or isinstance(up, cst.FunctionDef):
                break
            if isinstance(up, (cst.If, cst.IfExp, cst.Try, cst.TryStar, cst.Match, cst.BooleanOperation)):
                raise refuse(f"{file.location(up)}: a micro-batch may go without its backward pass")


def _last(scene: Scene, file: PythonFile, loop: cst.For, passes: cst.CSTNode) -> tuple[str, tuple[Splice, ...]]:
    """When the micro-batch is the last of its update: what guards the optimizer's step, or the loop's last pass, with what counts it."""
    steps = _updates(scene, loop.body)
    found: dict[tuple[int, bool], cst.If] = {}
    for call in steps:
        guards = [up for up in file.ancestors(call) if isinstance(up, cst.If) and file.inside(up, loop.body)]
        found |= {(id(up), up.orelse is not None and file.inside(call, up.orelse)): up for up in guards}
        if not guards or len(found) > 1:
            raise refuse(f"{file.location(call)}: the optimizer's step is under {'no' if not guards else 'more than one'} condition")
    around = file.function_around(loop) or file.module
    behind = [call for call in _updates(scene, around) if file.span(call)[0] > file.span(loop)[1]]
    if steps:
        (_, otherwise), guard = next(iter(found.items()))
        if behind:
            raise refuse(f"{file.location(behind[0])}: what the loop leaves over is updated behind it, with gradients of other passes")
        _behind_backward(file, loop, guard, passes)
        test = _in_front(scene, file, loop, guard)
        return (f"not ({test})" if otherwise else test), ()
    if not behind and not _updated_by_caller(scene, file, loop):
        raise refuse(f"{file.location(loop)}: the update is not seen behind the loop over micro-batches")
    _reads_no_gradients(file, loop, None)
    return last_pass(file, loop)


def _updated_by_caller(scene: Scene, file: PythonFile, loop: cst.For) -> bool:
    """Whether the one call of the function with `loop` is followed by the update, in the same loop where there is one."""
    function = file.function_around(loop)
    sites = callers.sites(scene.project, file, function) if function is not None else []
    if len(sites) != 1:
        return False
    where, site = sites[0]
    around = next(where.loops_around(site), None) or where.function_around(site) or where.module
    return any(where.span(call)[0] > where.span(site)[1] for call in _updates(scene, around))


def _behind_backward(file: PythonFile, loop: cst.For, guard: cst.If, backward: cst.CSTNode) -> None:
    """Raises `UsageError` where the update comes in front of the backward pass, or gradients are read outside of it."""
    if file.span(guard)[0] < file.span(backward)[1]:
        raise refuse(f"{file.location(guard)}: the update stands in front of the backward pass, whose gradients it is not for")
    _reads_no_gradients(file, loop, guard)


def _reads_no_gradients(file: PythonFile, loop: cst.For, guard: cst.If | None) -> None:
    """Raises `UsageError` where the loop reads gradients outside of `guard`: of most micro-batches they are not exchanged."""
    for node in descendants(loop.body, (cst.Attribute, cst.Call)):
        name = node.attr.value if isinstance(node, cst.Attribute) else callees.called_name(node)  # type: ignore[arg-type]
        reads = name == "grad" or name.startswith(("clip_grad", "unscale_"))
        if reads and (guard is None or not file.inside(node, guard)):
            raise refuse(f"{file.location(node)}: `{file.text(node)}` works on gradients of each micro-batch")


def _in_front(scene: Scene, file: PythonFile, loop: cst.For, guard: cst.If) -> str:
    """The condition of `guard` as it has to be asked at the top of the loop: a count that goes up in between is one less there."""
    test = guard.test
    if any(dotted(call.func) != "len" for call in descendants(test, cst.Call)) or any(descendants(test, cst.NamedExpr)):
        raise refuse(f"{file.location(test)}: the condition `{file.text(test)}` may give another answer in front of the step")
    names = [node for node in descendants(test, cst.Name) if is_name(file, node)]
    counted = {node.value for node in names if _counts_up(file, loop, guard, node.value)}
    behind = {node.value for node in names if _set_behind(file, loop, guard, node.value)}
    fixed(file, loop, {node.value for node in descendants(test, cst.Name)} - counted - behind)
    _set_nowhere(scene, file, test)
    start, text = file.span(test)[0], file.raw[slice(*file.span(test))]
    for node in reversed([each for each in names if each.value in counted]):
        a, b = (at - start for at in file.span(node))
        text = text[:a] + f"({node.value} + 1)".encode() + text[b:]
    return text.decode()


def _counts_up(file: PythonFile, loop: cst.For, guard: cst.If, name: str) -> bool:
    """Whether each pass of the loop adds one to `name` in front of `guard`, and only what `guard` leads to sets it otherwise."""
    lines = [sole(line) for line in loop.body.body]
    plus = [each for each in lines if isinstance(each, cst.AugAssign) and dotted(each.target) == name]
    if len(plus) != 1 or not isinstance(plus[0].operator, cst.AddAssign) or literal(plus[0].value) != 1:
        return False
    before = file.span(plus[0])[0] < file.span(guard)[0] and file.parent(guard) is loop.body
    others = [node for node in descendants(loop.body, SETS) if node is not plus[0]]
    return before and not set_elsewhere(file, name) and not any(sets(node, {name}) and not file.inside(node, guard.body) for node in others)


def _set_behind(file: PythonFile, loop: cst.For, guard: cst.If, name: str) -> bool:
    """Whether the loop sets `name` only behind the condition of `guard`, so that it is at the top of the loop what it is there."""
    at = [file.span(node)[0] for node in descendants(loop.body, SETS) if sets(node, {name})]
    return bool(at) and not set_elsewhere(file, name) and file.parent(guard) is loop.body and min(at) > file.span(guard.test)[1]


def _updates(scene: Scene, where: cst.CSTNode) -> list[cst.Call]:
    """Calls in `where` that make an update, with or without arguments, themselves or in a function of the program."""
    return [call for call in descendants(where, cst.Call) if micro_batches.makes_updates(scene.project, call)]  # type: ignore[arg-type,misc]


def _set_nowhere(scene: Scene, file: PythonFile, test: cst.BaseExpression) -> None:
    """Raises `UsageError` where a field in the condition is set outside a constructor: a call in the loop may do so."""
    fields = {node.attr.value for node in descendants(test, cst.Attribute)}
    for where in scene.project.parsed() if fields else ():
        for node in where.nodes:
            targets = targets_of(node) if isinstance(node, ASSIGNS) else []
            function = where.location(node).function if targets else ""
            if function != "__init__" and any(isinstance(each, cst.Attribute) and each.attr.value in fields for each in targets):
                raise refuse(f"{where.location(node)}: `{where.text(node)}` may change which micro-batch is the last")
