"""Sparse gradients for embedding tables whose rows a batch mostly leaves alone: an update then touches the rows that were looked up.

Right only where rows without a gradient stay as they are anyway: with Adagrad, or SGD without momentum, and without weight decay.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits import calls
from trainflash.knobs.edits.statements import without_argument
from trainflash.knobs.kinds import CallArgument, SparseGradients
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, lookups, sources
from trainflash.knobs.reading.expressions import argument_node, literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, has_splat, keyword, string_value, targets_of
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Edit, Splice

TABLES = ("torch.nn.Embedding", "torch.nn.EmbeddingBag")
ARGUMENT = CallArgument(TABLES, "sparse", position=6, default=False, local="literal", conflicts=("max_norm", "scale_grad_by_freq"))
LEAST_ROWS = 4096  # own: a smaller table is updated as a whole in less time than its rows are sorted
LAZY = ("SGD", "Adagrad")  # move no row without a gradient; SparseAdam does not compute what Adam does
FAILS = ("Adagrad",)  # with an error where sparse gradients meet weight decay
MOVES = ("momentum", "weight_decay", "dampening", "nesterov")  # what moves such rows all the same, above zero
DENSE = ("fused", "foreach", "differentiable")  # implementations that take no sparse gradients
CHOSEN = ("fused", "foreach")  # for their speed alone
READS = {"clip_grad_norm_", "clip_grad_value_", "DistributedDataParallel", "FullyShardedDataParallel", "fully_shard", "prepare"}
READS |= {"register_hook", "register_post_accumulate_grad_hook", "add_param_group", "compile"}  # what may not take or send sparse ones
DERIVES = ("torch.autograd.grad", "torch.autograd.functional.", "torch.func.", "functorch.")
CLIPS = ("gradient_clip_val", "max_grad_norm")
PREPARES = ("copy_", "uniform_", "normal_", "zero_", "fill_", "data", "requires_grad_", "shape", "device", "dtype", "size")


def sparse_gradients(edit: SparseGradients, scene: Scene) -> tuple[Target, ...]:
    """All large tables at once. Raises `UsageError` where their rows may be moved, or their gradients read, in another way."""
    project = scene.project
    dense_alone = _moves_looked_up_rows_alone(scene)
    _nobody_reads_gradients(project)
    found, reasons = [], []
    for file, call in _tables(project):
        try:
            _only_looked_up(project, file, call)
            found.append(calls.at_call(ARGUMENT, scene, file, call))
        except UsageError as bad:
            reasons.append(bad)
    dense = [target for target in found if target.current is not True]
    if found and not dense:
        raise refuse(f"{found[0].location}: sparse is set already")
    if not dense:
        raise reasons[0] if reasons else refuse(f"no embedding table of {LEAST_ROWS} rows and more is made in this project's own source")
    first = dense[0]
    where = "; ".join(dict.fromkeys(target.where for target in dense))

    def write(value: bool) -> tuple[Edit, ...]:
        return tuple(dict.fromkeys((*(each for target in dense for each in target.write(value)), *dense_alone)))

    return (Target(first.location, first.current, write, where),)


def _rates_alone(groups: cst.BaseExpression | None) -> bool:
    """Whether groups of parameters are written out, and say nothing of themselves but a learning rate."""
    written = [element.value for element in groups.elements] if isinstance(groups, (cst.List, cst.Tuple)) else []
    keys = [
        string_value(each.key) if isinstance(each, cst.DictElement) else None
        for group in written
        for each in getattr(group, "elements", ())
    ]
    return bool(written) and all(isinstance(group, cst.Dict) for group in written) and set(keys) <= {"params", "lr"}


def _moves_looked_up_rows_alone(scene: Scene) -> tuple[Splice, ...]:
    """The edits that take out of the optimizer's call what chooses an implementation that takes no sparse gradients. Raises `UsageError`
    where rows may be moved that were not looked up."""
    updates = scene.facts.get("updates")
    kind, place = (updates.optimizer, updates.location) if updates is not None else (None, None)
    if kind not in LAZY:
        raise refuse(f"{kind or 'the optimizer'} moves rows that were not looked up, too, or is not known not to")
    if place is None or not scene.project.owns(place):
        raise refuse("the optimizer is not made in this project's own source")
    file = scene.project.python(place.file)
    made = [
        call
        for call in file.calls
        if (dotted(call.func) or "").split(".")[-1] == kind and file.lines_of(call)[0] <= place.line <= file.lines_of(call)[1]
    ]
    if len(made) != 1 or has_splat(made[0], "**") or has_splat(made[0], "*"):
        raise refuse(f"{place}: what {kind} is given cannot be told")
    call = made[0]
    if any(arg.keyword is None for arg in call.args[2:]):
        raise refuse(f"{place}: arguments of {kind} stand without their names")
    dense_alone = []
    for name in (*MOVES, *DENSE):
        given = keyword(call, name)
        if given is None or _nothing(scene.project, file, given.value):
            continue
        if name in CHOSEN and literal(given.value) is True:
            dense_alone.append(without_argument(file, call, given))
        else:
            raise refuse(f"{place}: `{name}={short(file.text(given.value))}` does not go together with sparse gradients")
    first = call.args[0].value if call.args else None
    handed = kind in FAILS and isinstance(first, cst.Name)  # settings of a group that do not go together with it fail at once
    if not handed and not _rates_alone(first) and (not isinstance(first, cst.Call) or callees.method_name(first) != "parameters"):
        raise refuse(f"{place}: groups of parameters may have settings of their own")
    _alone(scene.project, call, updates.optimizers > 1)  # type: ignore[union-attr]
    return tuple(dense_alone)


def _alone(project: Project, made: cst.Call, several: bool) -> None:
    """Raises `UsageError` where another optimizer, of `several`, may get the gradients, or a setting of this one is changed later."""
    for file in project.parsed():
        for call in file.calls:
            full = file.full_name(call.func) or ""
            if several and call is not made and full.startswith("torch.optim.") and not full.startswith("torch.optim.lr_scheduler."):
                raise refuse(f"{file.location(call)}: another optimizer may not take sparse gradients")
        for node in file.nodes:
            if isinstance(node, cst.Subscript) and (place := lookups.key_of(node)) is not None and place[1] in MOVES:
                raise refuse(f"{file.location(node)}: `{short(file.text(node))}` may set {place[1]} later")


def _nothing(project: Project, file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether the value is zero, False or None."""
    try:
        source = sources.Resolver(project).source(file, node)
    except UsageError:
        return False
    return source is not None and source.value in (0, None)


def _nobody_reads_gradients(project: Project) -> None:
    for file in project.parsed():
        for node in file.nodes:
            if isinstance(node, cst.Attribute) and node.attr.value == "grad" and file.full_name(node) != "torch.autograd.grad":
                up = file.parent(node)
                if not (isinstance(up, cst.AssignTarget) and literal(file.parent(up).value) is None):  # type: ignore[union-attr]
                    raise refuse(f"{file.location(node)}: `{file.text(node)}` may be read, or changed")
        for call in file.calls:
            name = (file.full_name(call.func) or callees.method_name(call)).split(".")[-1]
            if (file.full_name(call.func) or "").startswith(DERIVES) and not _of_inputs(file, call):
                raise refuse(f"{file.location(call)}: `{short(file.text(call))}` may give the tables' gradients, which would be sparse")
            if name in READS or any(keyword(call, clip) is not None for clip in CLIPS) or (name == "getattr" and "grad" in file.text(call)):
                raise refuse(f"{file.location(call)}: {name} may not take sparse gradients")


def _of_inputs(file: PythonFile, call: cst.Call) -> bool:
    """Whether `torch.autograd.grad` is asked for the gradient of nothing but what the function itself makes an input of."""
    inputs = argument_node(file, call, "inputs", 1)
    parts = [each.value for each in inputs.elements] if isinstance(inputs, (cst.List, cst.Tuple)) else [inputs]
    scope = file.function_around(call) or file.module
    calls_there = [each for each in descendants(scope, cst.Call) if isinstance(each.func, cst.Attribute) and _asks_for_gradient(each)]  # type: ignore[attr-defined]
    asked = {dotted(each.func.value) for each in calls_there}  # type: ignore[attr-defined]
    made = {dotted(each) for node in descendants(scope, cst.Assign) if _asks_for_gradient(node.value) for each in targets_of(node)}  # type: ignore[attr-defined]
    plain = file.full_name(call.func) == "torch.autograd.grad"
    return plain and bool(parts) and all(isinstance(each, cst.Name) and each.value in asked | made for each in parts)


def _asks_for_gradient(node: cst.CSTNode) -> bool:
    """Whether a call is `x.requires_grad_()`, or makes something with `requires_grad=True`."""
    if not isinstance(node, cst.Call):
        return False
    told = keyword(node, "requires_grad")
    return (callees.method_name(node) == "requires_grad_" and not node.args) or (told is not None and literal(told.value) is True)


def _tables(project: Project) -> Iterator[tuple[PythonFile, cst.Call]]:
    """Calls that make tables that are large, or may be."""
    for file in project.parsed("Embedding"):
        for call in file.calls:
            if file.full_name(call.func) in TABLES and _rows(project, file, call) >= LEAST_ROWS:
                mode = argument_node(file, call, "mode", 5) if file.full_name(call.func) == TABLES[1] else None
                if mode is not None and string_value(mode) not in ("sum", "mean"):
                    raise refuse(f"{file.location(call)}: a bag takes no sparse gradients where its mode is not known to be sum or mean")
                yield file, call


def _rows(project: Project, file: PythonFile, call: cst.Call) -> int:
    node = argument_node(file, call, "num_embeddings", 0)
    try:
        source = sources.Resolver(project).source(file, node) if node is not None else None
    except UsageError:
        source = None
    return source.value if source is not None and isinstance(source.value, int) else LEAST_ROWS


def _only_looked_up(project: Project, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where the program uses the table's weight as a matrix, too: its gradient would be dense all the same."""
    up = file.parent(call)
    name = dotted(up.targets[0].target) if isinstance(up, cst.Assign) and len(up.targets) == 1 else None
    last = name.split(".")[-1] if name is not None else None  # None: in a list, say; any weight may be the table's
    for where in project.parsed("weight"):
        for node in where.nodes:
            if not isinstance(node, cst.Attribute) or node.attr.value != "weight":
                continue
            if last is not None and (dotted(node.value) or "").split(".")[-1] != last:
                continue
            around = where.parent(node)
            prepared = isinstance(around, cst.Attribute) and around.attr.value in PREPARES
            given = where.parent(around) if isinstance(around, cst.Arg) else None
            begun = isinstance(given, cst.Call) and ".init." in f".{where.full_name(given.func) or ''}."
            if not prepared and not begun and not _listed_for_update(where, node):
                raise refuse(f"{where.location(node)}: `{where.text(node)}` is used beside looking rows up")


def _listed_for_update(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether a weight only stands in a list of what an optimizer is given."""
    element = file.parent(node)
    around = file.parent(element) if isinstance(element, cst.Element) else None
    if not isinstance(around, (cst.List, cst.Tuple)):
        return False
    line = file.parent(around)
    if not isinstance(line, cst.Assign):
        return _for_update(file, around)
    name = dotted(line.targets[0].target) if len(line.targets) == 1 else None
    read = [each for each in file.nodes if isinstance(each, cst.Name) and each.value == name and not file.inside(each, line)]
    return bool(read) and all(_for_update(file, each) for each in read)


def _for_update(file: PythonFile, node: cst.CSTNode) -> bool:
    return any(isinstance(up, cst.Call) and (dotted(up.func) or "").split(".")[-1] in LAZY for up in file.ancestors(node))
