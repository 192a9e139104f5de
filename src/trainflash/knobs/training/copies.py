"""Copies that may not return before they are done: into host memory, or out of a pinned buffer that the program writes to again."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.effects import changes
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import given_to, literal, passed, refuse, short
from trainflash.knobs.reading.python_source import (
    PythonFile,
    descendants,
    dotted,
    keyword,
    parameter,
    parameter_names,
    positional,
    string_value,
)

DEEPEST = 3  # own: functions through which a device is handed


def may_be_late(project: Project, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where what follows the copy `call` may need it to be done."""
    first = positional(call, 0) or keyword(call, "device")
    if first is not None:
        for where, device in _devices(project, file, first.value, 0):
            if _is_host(where, device):
                raise refuse(
                    f"{where.location(device)}: the copy at {file.location(call)} may end in host memory, as of `{where.text(device)}`"
                )
    copied = call.func.value if isinstance(call.func, cst.Attribute) else None
    for where, made in _pinned(project):
        name = changes.bound_name(where, made)
        own = copied is not None and name is not None and changes.root(copied) == name.split(".")[0] and where.path == file.path
        handed = copied is not None and _is_parameter(file, copied)
        if (own or handed) and _written(where, name):
            raise refuse(f"{where.location(made)}: `{short(where.text(made))}` is written to again, perhaps before it is copied")


def _devices(project: Project, file: PythonFile, node: cst.BaseExpression, depth: int) -> Iterator[tuple[PythonFile, cst.BaseExpression]]:
    """What a device may be: the expression itself, or what callers pass for it and what stands for it otherwise."""
    param = parameter(file.function_around(node), node.value) if isinstance(node, cst.Name) else None
    if param is None or depth > DEEPEST:
        yield file, node
        return
    function = file.function_around(node)
    assert function is not None
    if param.default is not None:
        yield file, param.default
    for where, call in callers.sites(project, file, function):
        given = passed(where, call, file, function, param)
        if given is not None:
            yield from _devices(project, where, given, depth + 1)


def _is_parameter(file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether a function is handed what is copied, or a part of it."""
    function, root = file.function_around(node), changes.root(node)
    names = parameter_names(function) if function is not None else set()
    loops = [up for up in file.ancestors(node) if isinstance(up, (cst.ListComp, cst.GeneratorExp, cst.DictComp, cst.SetComp, cst.For))]
    over = {
        each.value
        for loop in loops
        for each in descendants(loop.iter if isinstance(loop, cst.For) else loop.for_in.iter, cst.Name)  # type: ignore[attr-defined]
    }
    return root in names or bool(over & names)


def _is_host(file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether a device is plainly the host's: written out, or a name that is given nothing else."""
    given = given_to(file.function_around(node) or file.module, dotted(node) or "") if isinstance(node, cst.Name) else []
    node = given[0] if len(given) == 1 else node
    if isinstance(node, cst.Call) and file.full_name(node.func) == "torch.device" and node.args:
        node = node.args[0].value
    return (string_value(node) or "").startswith("cpu")


def _pinned(project: Project) -> Iterator[tuple[PythonFile, cst.Call]]:
    """Calls that make a tensor in pinned memory; those of loaders make new ones for each batch."""
    for file in project.parsed("pin_memory"):
        for call in file.calls:
            option = keyword(call, "pin_memory")
            tensor = (file.full_name(call.func) or "").startswith("torch.") and callees.called_name(call) != "DataLoader"
            if callees.method_name(call) == "pin_memory" or (option is not None and tensor and literal(option.value) is not False):
                yield file, call


def _written(file: PythonFile, name: str | None) -> bool:
    """Whether something of that name is filled again; in doubt it is."""
    if name is None:
        return False
    for call in file.calls:
        if isinstance(call.func, cst.Attribute) and changes.writes(call.func.attr.value) and _named(call.func.value, name):
            return True
        out = keyword(call, "out")
        if out is not None and _named(out.value, name):
            return True
    targets = (node.target for node in file.each((cst.AssignTarget, cst.AugAssign)))
    return any(isinstance(each, cst.Subscript) and _named(each, name) for each in targets)


def _named(node: cst.BaseExpression, name: str) -> bool:
    """Whether `node` is what has that name, or a part of it."""
    while isinstance(node, cst.Subscript) or (isinstance(node, cst.Attribute) and dotted(node) != name):
        node = node.value
    return dotted(node) == name
