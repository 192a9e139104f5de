"""Runs of rows that are no list of samples: each rank's part belongs to its place, as of a stream, a weight, or results in their order."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import given_to, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, base_names, decorator_names, descendants, dotted, targets_of

STREAMS = ("frombuffer", "memmap", "fromfile", "read", "read_bytes", "read_text", "encode", "encode_ordinary", "from_file")
STREAM_WORDS = {"token", "tokens", "text", "stream", "signal", "series", "waveform", "bytes", "flat", "buffer"}
WEIGHT_WORDS = {"weight", "weights", "bias", "kernel", "param", "params", "parameter", "parameters", "state", "grad", "grads"}
WEIGHTS = (
    "Parameter",
    "register_buffer",
    "register_parameter",
    "copy_",
    "load_state_dict",
    "all_gather_into_tensor",
    "reduce_scatter_tensor",
)
MACHINE = re.compile(r"cpu|core|affinity|device_count", re.IGNORECASE)
UNTRAINED = re.compile(r"predict|infer|evaluat|generat|valid|^eval|_eval|^test|_test|embed|encode|score", re.IGNORECASE)
GATHERS = ("gather", "gather_object", "all_gather", "all_gather_object", "all_gather_into_tensor", "gather_for_metrics")
TAKES_NUMBERS = (
    "list",
    "tuple",
    "set",
    "sorted",
    "len",
    "iter",
    "enumerate",
    "Subset",
    "select",
    "sample",
    "shuffle",
    "SubsetRandomSampler",
)


def check(project: Project, file: PythonFile, node: cst.BaseExpression, rows: cst.BaseExpression | None) -> None:
    """Raises `UsageError` where the run `node` of `rows` may not be dealt out; without `rows` it is their numbers."""
    here, text = file.location(node), short(file.text(node))
    if _is_set(file, node):
        raise refuse(f"{here}: `{text}` is where each rank puts its part, and is read by its place")
    around = file.function_around(node)
    words = set(re.split(r"[^a-z]+", file.text(rows).lower())) if rows is not None else set()
    owner = file.class_around(node)
    calls = [up for up in file.ancestors(node) if isinstance(up, cst.Call)]
    if any(callees.called_name(each) in WEIGHTS for each in calls) or words & WEIGHT_WORDS or "Module" in base_names(owner):
        raise refuse(f"{here}: `{text}` is a part of a network or its state, and no samples")
    line = file.statement(node)
    if rows is None and (MACHINE.search(file.text(line or node)) or not _numbers_rows(file, node)):
        raise refuse(f"{here}: `{text}` does not number rows of a data set")
    if rows is not None and (words & STREAM_WORDS or any(_is_stream(where, each) for where, each in _given(project, file, rows))):
        raise refuse(f"{here}: `{file.text(rows)}` is a stream, whose parts have to stay in one piece")
    for name in _names(file, node):
        for each in descendants(around.body if around is not None else file.module, cst.Subscript):
            if dotted(each.value) == name and _is_window(each):  # type: ignore[attr-defined]
                raise refuse(f"{file.location(each)}: `{short(file.text(each))}` is a window of neighbours")
    if around is not None:
        _trained_on(project, file, around, here)


def _is_set(file: PythonFile, node: cst.CSTNode) -> bool:
    for up in file.ancestors(node):
        if any(file.inside(node, target) for target in targets_of(up) if not isinstance(up, (cst.For, cst.CompFor))):
            return True
        if isinstance(up, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            return False
    return False


def _numbers_rows(file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether a `range` is gone through, made a list of, named, returned, or handed to what takes numbers of rows."""
    up = file.parent(node)
    if not isinstance(up, cst.Arg):
        return True
    call = file.parent(up)
    return isinstance(call, cst.Call) and callees.called_name(call) in TAKES_NUMBERS


def _given(project: Project, file: PythonFile, rows: cst.BaseExpression, depth: int = 0) -> Iterator[tuple[PythonFile, cst.BaseExpression]]:
    """What `rows` are made of, as far as the source of this function and its callers shows."""
    name, around = dotted(rows), file.function_around(rows)
    if name is None or depth > 3:
        yield file, rows
        return
    places = [around, file.class_of(around), file.module] if around is not None else [file.module]
    made = next((found for place in places if place is not None and (found := given_to(place, name))), [])
    for each in made:
        yield file, each
        if isinstance(each, (cst.Name, cst.Attribute)):
            yield from _given(project, file, each, depth + 1)
    if around is not None and not made:
        for where, call in callers.sites(project, file, around):
            for arg in call.args:
                yield from _given(project, where, arg.value, depth + 1)


def _is_stream(file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether one array, text or file is made as a whole, other than in a list of many."""
    todo: list[cst.CSTNode] = [node]
    while todo:
        each = todo.pop()
        if isinstance(each, (cst.BaseComp, cst.List, cst.Dict, cst.Lambda)):
            continue
        if isinstance(each, cst.Call):
            name = callees.called_name(each)
            if name in ("split", "splitlines", "sorted", "loads", "load"):
                continue  # parts of it
            if name in STREAMS and isinstance(each.func, cst.Attribute):
                return True
        todo += each.children
    return False


def _names(file: PythonFile, node: cst.CSTNode) -> list[str]:
    """By which names the run is known where it is taken."""
    return [
        name
        for up in file.ancestors(node)
        if isinstance(up, cst.Assign)
        for target in up.targets
        if (name := dotted(target.target)) is not None
    ]


def _is_window(node: cst.Subscript) -> bool:
    part = node.slice[0].slice if node.slice else None
    return isinstance(part, cst.Slice) and part.lower is not None and part.upper is not None and part.step is None and _sums(part.upper)


def _sums(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.BinaryOperation)


def _trained_on(project: Project, file: PythonFile, function: cst.FunctionDef, here: object) -> None:
    """Raises `UsageError` where the function, or what calls it, is about results in their order and no training."""
    around = [(file, function)]
    for where, call in callers.sites(project, file, function):
        caller = where.function_around(call)
        around += [(where, caller)] if caller is not None else []
    for where, each in around:
        untrained = any(name in ("torch.no_grad", "torch.inference_mode") for name in decorator_names(where, each))
        if UNTRAINED.search(each.name.value) or untrained:
            raise refuse(f"{here}: `{each.name.value}` trains on nothing, and its results may be read in the order of the rows")
        for call in descendants(each.body, cst.Call):
            if callees.called_name(call) in GATHERS:  # type: ignore[arg-type]
                raise refuse(
                    f"{where.location(call)}: `{short(where.text(call))}` puts parts of all ranks behind each other, in their order"
                )
