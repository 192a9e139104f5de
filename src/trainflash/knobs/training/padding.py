"""Whether a collate function and the network bear batches that are as wide as their longest sample."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.effects import given
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callers, sources
from trainflash.knobs.reading.expressions import given_to, is_name, literal, refuse
from trainflash.knobs.reading.python_source import (
    PythonFile,
    descendants,
    dotted,
    elements_of,
    own_field,
    own_method,
    string_value,
    targets_of,
    unsubscripted,
)
from trainflash.knobs.scene import Scene
from trainflash.knobs.training import samples, widths

SHAPES = {
    "AvgPool1d",
    "BatchNorm1d",
    "LayerNorm",
    "LazyLinear",
    "Linear",
    "MaxPool1d",
    "Parameter",
    "Unflatten",
    "expand",
    "register_buffer",
    "reshape",
    "unflatten",
    "view",
}
POSITIONS = {
    "arange",
    "broadcast_to",
    "empty",
    "eye",
    "full",
    "linspace",
    "ones",
    "randn",
    "range",
    "rearrange",
    "repeat",
    "tril",
    "triu",
    "zeros",
}  # in a network
POOLS = {"amax", "logsumexp", "max", "mean", "pool", "sum"}


def cuts(function: cst.FunctionDef) -> bool:
    """Whether samples may be cut: any slice that does not begin at the start and end at a sample's own length."""
    return any(
        each.lower is not None or (each.upper is not None and not (isinstance(each.upper, cst.Call) and dotted(each.upper.func) == "len"))
        for each in descendants(function.body, cst.Slice)
    )


def rows_as_they_are(batch: samples.Batch) -> None:
    """Samples are as long in the loop as in the batch, cuts aside, and every row is filled from its start."""
    file, function, names = batch.file, batch.function, batch.names()
    for assign in descendants(function.body, cst.Assign):
        for target in assign.targets:
            held = (
                {each.value for each in descendants(target.target, cst.Name)} if isinstance(target.target, (cst.Name, cst.Tuple)) else set()
            )
            if held & names and not samples.keeps_length(file, assign.value, held):
                raise refuse(f"{file.location(assign)}: `{file.text(assign)}` may change the length of a sample")
            last = target.target.slice[-1].slice if isinstance(target.target, cst.Subscript) else None
            if isinstance(last, cst.Slice) and (last.upper is not None or last.lower is not None):
                plain = last.lower is None and last.upper is not None and batch.length(last.upper) is not None
                if not plain:
                    raise refuse(f"{file.location(assign)}: `{file.text(assign)}` does not fill a row from its start to a sample's length")
    for node in descendants(function.body, cst.AugAssign):
        if dotted(node.target) in names:
            raise refuse(f"{file.location(node)}: `{file.text(node)}` may change the length of a sample")


def network_of_any_width(scene: Scene, file: PythonFile, function: cst.FunctionDef, width: cst.BaseExpression) -> None:
    """No parameter, buffer, reshaping or position of the program is made of the width, under whatever name, and nothing is laid flat."""
    names = widths.of(scene.project, file, width)
    typed = isinstance(width, cst.Integer)
    numbers = names.numbers | ({number} if (number := _typed(scene.project, file, width)) is not None else set())
    for where in scene.project.parsed():
        for node in where.nodes:
            if where is file and where.inside(node, function):
                continue
            if isinstance(node, cst.Call):
                _shaped(where, node, names, numbers, file.text(width), typed=typed)
            elif isinstance(node, cst.Subscript) and _in_network(where, node):
                _picked(where, node, names)
            elif isinstance(node, cst.Attribute) and node.attr.value == "weight":
                _whole_table(where, node, names)


def _shaped(file: PythonFile, call: cst.Call, names: widths.Width, numbers: set[int], width: str, *, typed: bool) -> None:
    tail = (file.full_name(call.func) or "").split(".")[-1] or (call.func.attr.value if isinstance(call.func, cst.Attribute) else "")
    counts = tail in SHAPES or (tail in POSITIONS and _in_network(file, call))
    values = [arg.value for arg in call.args]
    held = any(names.holds(file, value) and not _another(names.project, file, value, numbers) for value in values)
    alike = typed and any(literal(node) in names.numbers for value in values for node in descendants(value, cst.Integer))
    if counts and (held or alike) and not _always_cut(file, call, names):
        raise refuse(f"{file.location(call)}: `{file.text(call)}` counts on {width}, and a narrower batch may not fit")
    if _lays_flat(file, call, tail) and _in_network(file, call) and not _pools(file, call):
        raise refuse(f"{file.location(call)}: `{file.text(call)}` may lay whole rows flat, and a narrower batch may not fit what follows")


def _another(project: Project, file: PythonFile, value: cst.BaseExpression, numbers: set[int]) -> bool:
    """Whether `value`, which is called like a width, is known to be another number than it."""
    number = _typed(project, file, value) if numbers else None
    return number is not None and number not in numbers


def _typed(project: Project, file: PythonFile, node: cst.BaseExpression) -> int | None:
    """The whole number that somebody typed for a name or a field; None where there is none, or more than one."""
    if not isinstance(node, (cst.Name, cst.Attribute)):
        return None
    source = sources.known(project, file, node)
    return source.value if source is not None and source.write is not None and type(source.value) is int else None


def _always_cut(file: PythonFile, node: cst.CSTNode, names: widths.Width, seen: frozenset[tuple[int, str]] = frozenset()) -> bool:
    """Whether `node` goes into fields alone, such as a table of positions, that are only read as far as the batch is wide.

    On its way there it may have names of its own (`seen`: those that were followed), and be what a function returns.
    """
    function = file.function_around(node)
    for up in (node, *file.ancestors(node)):
        if isinstance(up, cst.Call) and _tail(up) == "register_buffer" and up.args:
            return _cut_field(file, up, string_value(up.args[0].value) or "", names)
        if isinstance(up, (cst.Assign, cst.AnnAssign, cst.AugAssign)):
            targets = [unsubscripted(each) for target in targets_of(up) for each in elements_of(target)]
            return bool(targets) and all(_cut_target(file, function, target, names, seen) for target in targets)
        if isinstance(up, cst.Return) and function is not None:
            calls = list(callers.sites(names.project, file, function))
            return bool(calls) and len(seen) < widths.DEEPEST and all(_always_cut(*call, names, seen) for call in calls)
        if isinstance(up, cst.BaseCompoundStatement):
            return False
    return False


def _cut_target(
    file: PythonFile, function: cst.FunctionDef | None, target: cst.BaseExpression, names: widths.Width, seen: frozenset[tuple[int, str]]
) -> bool:
    if (name := own_field(target)) is not None:
        return _cut_field(file, target, name, names)
    if not isinstance(target, cst.Name) or function is None:
        return False
    key = (id(function), target.value)
    reads = [
        node
        for node in descendants(function.body, cst.Name)
        if node.value == target.value and is_name(file, node) and not given.stored(file, node)  # type: ignore[attr-defined,arg-type]
    ]
    return key in seen or (bool(reads) and all(_always_cut(file, node, names, seen | {key}) for node in reads))


def _cut_field(file: PythonFile, node: cst.CSTNode, name: str, names: widths.Width) -> bool:
    owner = file.class_around(node)
    reads = [
        each
        for each in (descendants(owner, cst.Attribute) if owner is not None else ())
        if own_field(each) == name and not isinstance(file.parent(each), cst.AssignTarget) and not _initialises(file, each)
    ]
    return bool(reads) and all(_cut(file, each, names) for each in reads)


def _initialises(file: PythonFile, node: cst.CSTNode) -> bool:
    around = file.location(node).function
    return "init" in around or "reset" in around


def _cut(file: PythonFile, node: cst.CSTNode, names: widths.Width) -> bool:
    """`x[: n]` and `x[:, : n]` with an end that is not the width."""
    up = file.parent(node)
    slices = [part.slice for part in up.slice if isinstance(part.slice, cst.Slice)] if isinstance(up, cst.Subscript) else []
    ends = [each.upper for each in slices if each.upper is not None]
    return bool(ends) and not any(names.holds(file, end) for end in ends)


def _lays_flat(file: PythonFile, call: cst.Call, tail: str) -> bool:
    """`x.flatten(1)`, `nn.Flatten()` and `x.view(len(x), -1)`: all but the first dimension become one."""
    values = [literal(arg.value) for arg in call.args]
    if tail == "Flatten":
        return values in ([], [1], [1, -1])
    if tail == "flatten":
        plain = file.full_name(call.func) != "torch.flatten"
        return (values if plain else values[1:]) in ([1], [1, -1])
    return tail in ("view", "reshape") and len(values) == 2 and values[1] == -1


def _pools(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether the network around `node` makes one size of any: by adaptive pooling, or by a mean, sum or maximum."""
    owner = file.class_around(node) or node
    return any(
        "Adaptive" in (name := dotted(call.func) or "") or name.startswith("F.adaptive") or _tail(call) in POOLS
        for call in descendants(owner, cst.Call)
    )


def _tail(call: cst.Call) -> str:
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else ""


def _picked(file: PythonFile, node: cst.Subscript, names: widths.Width) -> None:
    """Raises `UsageError` for `x[:, WIDTH - 1]`: a narrower batch has no such place."""
    for part in node.slice:
        if isinstance(part.slice, cst.Index) and names.holds(file, part.slice.value):
            raise refuse(f"{file.location(node)}: `{file.text(node)}` is a place that a narrower batch may not have")


def _whole_table(file: PythonFile, node: cst.Attribute, names: widths.Width) -> None:
    """Raises `UsageError` where all rows of a table with one row for each place are read, whatever the batch is wide."""
    owner = file.class_around(node)
    made = given_to(owner, dotted(node.value) or "") if owner is not None and dotted(node.value) is not None else []
    for value in made:
        first = (
            value.args[0].value if isinstance(value, cst.Call) and value.args and (dotted(value.func) or "").endswith("Embedding") else None
        )
        if first is not None and names.holds(file, first) and not isinstance(file.parent(node), cst.Subscript):
            raise refuse(
                f"{file.location(node)}: `{file.text(node)}` has as many rows as the fixed width, and a narrower batch may not fit"
            )


def _in_network(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether `node` stands in a class that has a forward pass."""
    owner = file.class_around(node)
    return owner is not None and own_method(owner, "forward", "training_step") is not None
