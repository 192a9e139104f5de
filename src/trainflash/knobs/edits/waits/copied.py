"""Whether what a program saves can be copied first: `deepcopy` fails on a tensor with a history, which saving does not mind."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.effects import changes
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import passed, refuse, short
from trainflash.knobs.reading.python_source import (
    PythonFile,
    base_names,
    descendants,
    dotted,
    methods_of,
    own_method,
    parameter,
    targets_of,
)

OF_NETWORKS = {"children", "eval", "modules", "named_parameters", "parameters", "register_forward_hook", "requires_grad_", "train"}
KEPT_WITH_HISTORY = {"parametrize", "register_forward_hook", "register_forward_pre_hook", "spectral_norm", "weight_norm"}
FREE = {"bool", "detach", "dict", "float", "int", "item", "len", "list", "numpy", "set", "str", "tolist"}  # give what has no history
DEEPEST = 2  # own: functions that hand on what is saved


def can_be(project: Project, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where what `call` saves may hold a tensor with its history: a loss, or a network that keeps what it computed."""
    around = file.function_around(call) or file.module
    saved = [call.args[0].value, *values(around, changes.root(call.args[0].value))]
    trained = {
        dotted(each.func.value) for each in file.calls if isinstance(each.func, cst.Attribute) and each.func.attr.value == "backward"
    }
    for value in saved:
        for name in descendants(value, cst.Name):
            if not _is_whole(file, name):
                continue
            up = file.parent(name)
            if name.value in trained or (name.value == "loss" and not isinstance(up, cst.Arg)):
                raise refuse(f"{file.location(name)}: `{name.value}` may hold its history, and such a tensor cannot be copied")
            for added in _added(file, name.value):
                if dotted(added) in trained:
                    raise refuse(f"{file.location(added)}: `{name.value}` is given losses with their history, which cannot be copied")
    kept = next(_keeping(project), None)
    if kept is None:
        return
    for value in saved:
        for part in _parts(file, value):
            if _is_network(project, file, part, 0):
                told = f"`{short(kept[0].text(kept[1]))}` at {kept[0].location(kept[1])}"
                raise refuse(f"{file.location(part)}: the network itself is saved, and {told} may keep a tensor that cannot be copied")


def values(around: cst.CSTNode, name: str) -> list[cst.BaseExpression]:
    """What assignments in `around` give to a variable."""
    return [each.value for each in descendants(around, cst.Assign) for target in each.targets if name and dotted(target.target) == name]  # type: ignore[attr-defined]


def _is_whole(file: PythonFile, name: cst.CSTNode) -> bool:
    """Whether a variable is saved as it is, and not an attribute of it, or what a call gives."""
    up = file.parent(name)
    return not isinstance(up, (cst.Attribute, cst.Call)) and not (isinstance(up, cst.Arg) and up.keyword is name)


def _added(file: PythonFile, name: str) -> Iterator[cst.BaseExpression]:
    """What is appended to a list, or set in it."""
    for call in file.calls:
        if dotted(call.func) == f"{name}.append" and call.args:
            yield call.args[0].value
    for node in file.nodes:
        if isinstance(node, cst.Assign) and any(
            isinstance(each, cst.Subscript) and dotted(each.value) == name for each in targets_of(node)
        ):
            yield node.value


def _parts(file: PythonFile, value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Names and fields that are saved as they are, the innermost of tables and lists."""
    if dotted(value) is not None:
        yield value
    elif isinstance(value, cst.Dict):
        for element in value.elements:
            yield from _parts(file, element.value)
    elif isinstance(value, (cst.List, cst.Tuple)):
        for each in value.elements:
            yield from _parts(file, each.value)
    elif isinstance(value, cst.Call) and dotted(value.func) in ("dict", "list", "tuple"):
        for arg in value.args:
            yield from _parts(file, arg.value)
    elif isinstance(value, cst.IfExp):
        yield from _parts(file, value.body)
        yield from _parts(file, value.orelse)


def _keeping(project: Project) -> Iterator[tuple[PythonFile, cst.CSTNode]]:
    """Where a network gets something after it was made: a field that a pass sets, a hook, a weight that each pass computes anew."""
    for file in project.parsed():
        for node in file.nodes:
            if isinstance(node, cst.Name) and node.value in KEPT_WITH_HISTORY:
                yield file, node
        for owner in file.each(cst.ClassDef):
            methods = methods_of(owner)
            if not any(each.name.value == "forward" for each in methods) and "Module" not in base_names(owner):
                continue
            for method in methods:
                if method.name.value not in callees.CONSTRUCTORS:
                    yield from ((file, node) for node in descendants(method.body, (cst.Assign, cst.AnnAssign, cst.Call)) if _keeps(node))


def _keeps(node: cst.CSTNode) -> bool:
    """Whether a field is given something, or something is appended to it, that may have a history."""
    if isinstance(node, cst.Call):
        own = callees.method_name(node) in ("append", "extend", "update") and (dotted(node.func.value) or "").startswith("self.")  # type: ignore[attr-defined]
        return own and not all(_free(arg.value) for arg in node.args)
    fields = [each for each in targets_of(node) if changes.root(each) == "self"]
    return bool(fields) and not _free(node.value)  # type: ignore[attr-defined]


def _free(value: cst.BaseExpression | None) -> bool:
    """Whether a value shows that it has no history: a number, a text, a truth value, or what is detached."""
    if value is None or isinstance(value, (cst.BaseNumber, cst.BaseString, cst.Comparison)) or dotted(value) in ("True", "False", "None"):
        return True
    return isinstance(value, cst.Call) and callees.called_name(value) in FREE | {
        "len",
        "int",
        "float",
        "bool",
        "str",
        "set",
        "dict",
        "list",
    }


def _is_network(project: Project, file: PythonFile, node: cst.BaseExpression, depth: int) -> bool:
    """Whether a name stands for a network, in the program's words: it is asked for its parameters, switched, or made by such a class."""
    tail = (dotted(node) or "").removesuffix(".module").split(".")[-1]
    owner = file.class_around(node) if tail == "self" else None
    if owner is not None:
        return own_method(owner, "forward") is not None
    for where in project.parsed(tail):
        for call in where.calls:
            held = call.func.value if isinstance(call.func, cst.Attribute) else None
            if held is not None and (dotted(held) or "").split(".")[-1] == tail and callees.method_name(call) in OF_NETWORKS:
                return True
    function = file.function_around(node)
    param = parameter(function, tail)
    if param is None or function is None or depth >= DEEPEST:
        return False
    handed = [(where, passed(where, call, file, function, param)) for where, call in callers.sites(project, file, function)]
    return any(each is not None and dotted(each) is not None and _is_network(project, where, each, depth + 1) for where, each in handed)
